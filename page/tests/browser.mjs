// A browser for the tests: Debian's Chromium, which reaches for nothing.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { existsSync, readFileSync } from "node:fs";

export const PAGE = process.env.ATTN_PAGE ?? new URL("../../build/release/page/attn.html", import.meta.url).pathname;
export const PROGRAM = process.env.ATTN_PROGRAM ?? new URL("../../build/release/attn", import.meta.url).pathname;
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

export const launch = () => chromium.launch({ executablePath, args });

/** A page on which an error, or a request for anything else than itself, fails the test that calls check(). */
export async function open(browser, hash = "", options = {}, url = `file://${PAGE}`) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(url.split("#")[0]) && !/^(data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  await page.goto(url + hash);
  await page.waitForSelector("main");
  return { page, problems, close: () => context.close() };
}

/** The selector of a table's cell. */
export const cell = (name, row, column) => `[data-table="${name}"] tbody tr:nth-child(${row + 1}) > td:nth-of-type(${column + 1})`;

/** Types a number into a cell, and takes it with a key. */
export async function type(page, at, text, key = "Enter") {
  await page.click(at);
  await page.fill(`${at} > input`, text);
  await page.keyboard.press(key);
}

/** Where the keyboard is: a cell as "weights 2 0", all else by its label or text. */
export const focused = (page) => page.evaluate(() => {
  const active = document.activeElement, at = active.closest("td");
  if (!at) return active.getAttribute("aria-label") || active.textContent.trim().slice(0, 20);
  const cells = [...at.parentElement.children].filter((one) => one.matches("td"));
  return `${at.closest("[data-table]").dataset.table} ${at.parentElement.sectionRowIndex} ${cells.indexOf(at)}`;
});

/** The numbers of a table as they are shown, without a mistake's. */
export const shown = (page, name) => page.$$eval(`[data-table="${name}"] tbody tr`, (rows) =>
  rows.map((row) => [...row.querySelectorAll("td")].map((one) => one.firstChild.nodeValue)));

/** A file that a click saves. */
export async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
  return readFileSync(await download.path());
}

/** All digits, as a table is saved. */
export async function digits(page, name) {
  const lines = String(await saved(page, `[data-table="${name}"] >> text=CSV`)).trim().split("\n").map((line) => line.split(","));
  const [hasColumns, hasRows] = await page.$eval(`[data-table="${name}"] table`, (one) => [one.tHead !== null, one.tBodies[0].querySelector("th") !== null]);
  return lines.slice(Number(hasColumns)).map((line) => line.slice(Number(hasRows)).map((text) => (text === "-inf" ? text : Number(text))));
}

/** Holds once the page has drawn what follows from the last click; `expected` is a value or a pattern. */
export async function eventually(read, expected) {
  for (let n = 0; ; ++n) {
    const actual = await read();
    try {
      if (expected instanceof RegExp) assert.match(actual, expected);
      else assert.deepEqual(actual, expected);
      return;
    } catch (error) {
      if (n === 300) throw error;
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}
