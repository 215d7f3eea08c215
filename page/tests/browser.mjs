// A browser for the tests: Debian's Chromium, which reaches for nothing.
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { existsSync } from "node:fs";

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

/** The numbers of a table as they are shown: of fields what is typed in, of cells their text without a mistake's. */
export const shown = (page, name) => page.$$eval(`[data-table="${name}"] tbody tr`, (rows) =>
  rows.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.querySelector("input")?.value ?? cell.querySelector("span").textContent)));

/** All digits, from the titles. */
export const digits = (page, name) => page.$$eval(`[data-table="${name}"] tbody tr`, (rows) =>
  rows.map((row) => [...row.querySelectorAll("td > input, td > span")].map((cell) => (cell.title === "−∞" ? "-inf" : Number(cell.title)))));

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
