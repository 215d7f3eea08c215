// attn explore and attn explain --format html: the page as it is served, and as a file with numbers in it.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eventually, launch, open, PROGRAM, saved, shown } from "./browser.mjs";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

/** Starts attn explore on a free port and runs `use` with its address; then Ctrl-C, which must end it well. */
async function serving(options, use) {
  const server = spawn(PROGRAM, ["explore", "--port", "0", ...options]);
  let said = "", wrong = "";
  server.stderr.on("data", (data) => { wrong += data; });
  const ended = new Promise((done) => server.on("exit", (code) => done(code)));
  const address = await new Promise((done, fail) => {
    server.stdout.on("data", (data) => {
      said += data;
      const match = /http:\/\/\S+/.exec(said);
      if (match) done(match[0]);
    });
    ended.then((code) => fail(new Error(`attn explore ended with ${code}: ${wrong}`)));
  });
  try {
    await use(address);
  } finally {
    server.kill("SIGINT");
  }
  assert.equal(await ended, 0);
}

const model = (() => {
  try {
    execFileSync(PROGRAM, ["map", "--model", "smollm2", "--json", "a"], { stdio: "ignore" });
    return "smollm2";
  } catch {
    return undefined;
  }
})();

test("a file holds the numbers that it was made with", async () => {
  const folder = mkdtempSync(join(tmpdir(), "attn-page-")), file = join(folder, "lesson.html");
  try {
    execFileSync(PROGRAM, ["explain", "--set", "k[4471]=2,0", "--format", "html", "-o", file]);
    const { page, problems, close } = await open(browser, "", {}, `file://${file}`);
    await eventually(async () => (await shown(page, "weights"))[1], ["0.67", "0.33", "0"]);
    assert.deepEqual(problems, []);
    await close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the page is served, and asks for nothing else", () => serving([], async (address) => {
  const { page, problems, close } = await open(browser, "", {}, address);
  await eventually(async () => (await shown(page, "weights"))[2], ["0.673", "0.164", "0.164"]);
  await page.click("text=Real heads");
  await eventually(() => page.textContent("main"), /attn explore --model smollm2/);
  await eventually(() => page.textContent(".panel [role=status]"), /“it” \(15\) gives “kettle” \(12\) the weight 0\.5/);
  assert.deepEqual(problems, []);
  await close();
}));

test("a real model: what “it” looks at in the kettle sentence", { skip: !model && "skipped: the model smollm2 is not here" }, () =>
  serving(["--model", "smollm2"], async (address) => {
    const { page, problems, close } = await open(browser, "#heads", {}, address);
    await page.waitForSelector(".heads li", { timeout: 60000 });
    await eventually(() => page.textContent("[role=note]"), /debugging picture, not an account of why.*float64/s);
    await eventually(() => page.textContent(".panel [role=status]"), /“it” \(15\) gives “kettle” \(12\) the weight 0\.56/);
    assert.match(await page.textContent(".heads"), /layer 25, head 2/);
    await page.click(".text button:nth-child(13)", { modifiers: ["Shift"] });
    await eventually(() => page.textContent(".panel.list h3"), /from “it” to “kettle”/);
    await eventually(() => page.textContent(".heads li:first-child"), /0\.56.*layer 25, head 2/);
    await page.focus(".grid canvas");
    await page.keyboard.press("ArrowUp");
    await eventually(() => page.textContent("main"), /Layer 24, head 2/);
    await page.click('[aria-label="Undo"]');
    await eventually(() => page.textContent("main"), /Layer 25, head 2/);
    await page.click('[aria-label="Redo"]');
    await eventually(() => page.textContent("main"), /Layer 24, head 2/);
    await eventually(async () => decodeURIComponent(page.url()), /"layer":24/);
    const link = page.url();
    await page.goto("about:blank");
    await page.goto(link);
    await page.waitForSelector(".heads li", { timeout: 60000 });
    await eventually(() => page.textContent("main"), /Layer 24, head 2/);
    await page.fill(".wide input", "");
    await page.click("button:text-is(\"map\")");
    await eventually(() => page.textContent(".problem"), /text/);
    problems.splice(0, problems.length, ...problems.filter((one) => !/400/.test(one)));  // the browser's own word on that
    assert.deepEqual(problems, []);
    if (process.env.ATTN_PICTURES) {
      await page.goto("about:blank");
      await page.goto(`${address}#heads`);
      await page.waitForSelector(".heads li", { timeout: 60000 });
      await page.waitForTimeout(500);
      await page.screenshot({ path: `${process.env.ATTN_PICTURES}/explorer-heads.png`, fullPage: true });
    }
    await close();
  }));

test("attn map writes it as one offline file, of chosen layers, which says how it is rounded", { skip: !model && "skipped: the model smollm2 is not here" }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "attn-page-")), file = join(folder, "map.html");
  try {
    execFileSync(PROGRAM, ["map", "--model", "smollm2", "--layer", "25", "--from", "it", "-o", file, "The kettle arrived but it was broken."]);
    const { page, problems, close } = await open(browser, "", {}, `file://${file}`);
    await eventually(() => page.textContent("main"), /Layer 25, head 2/);
    await eventually(() => page.textContent("[role=note]"), /not an account of why.*float64.*rounded by at most √w\/255/s);
    await eventually(() => page.textContent(".heads li:first-child"), /layer 25, head \d/);
    await page.check("text=and what for");
    await page.click(".text button:nth-child(2)");
    await eventually(() => page.textContent(".panel.list h3"), /from “it” to “kettle”/);
    await page.click('[aria-label="Look for anything"]');
    await eventually(() => page.textContent(".panel.list h3"), /beyond habits from “it”/);
    await page.focus("canvas.head");
    await page.keyboard.press("ArrowUp");
    await eventually(() => page.textContent(".panel [role=status]"), /“but” \(3\) gives/);
    await page.keyboard.press("Enter");
    await eventually(() => page.textContent(".panel.list h3"), /from “but”/);
    const table = String(await saved(page, ".panel >> text=CSV")).trim().split("\n").map((line) => line.split(","));
    assert.deepEqual([table.length, table[0].length], [table[1].length, table.length]);
    for (const line of table.slice(1)) assert.ok(Math.abs(line.slice(1).reduce((sum, weight) => sum + Number(weight), 0) - 1) < 0.05);
    for (const picture of [".panel:has(.grid) >> text=PNG", ".panel:has(canvas.head) >> text=PNG"])
      assert.equal((await saved(page, picture)).subarray(1, 4).toString(), "PNG");
    assert.deepEqual(problems, []);
    await close();
    assert.throws(() => execFileSync(PROGRAM, ["map", "--model", "smollm2", "-o", file, "word ".repeat(600)], { stdio: "pipe" }), /choose --layer/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("maps that nobody waits for do not keep others waiting", { skip: !model && "skipped: the model smollm2 is not here" }, () =>
  serving(["--model", "smollm2"], async (address) => {
    const map = (text, signal) => fetch(`${address}api/map`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }), signal });
    const long = "The quick brown fox jumps over the lazy dog. ".repeat(40), left = new AbortController();
    const before = performance.now();
    await map(long);
    const one = performance.now() - before;
    const asked = Array.from({ length: 6 }, () => map(long, left.signal).catch((error) => error.name));
    await new Promise((done) => setTimeout(done, 500));
    left.abort();
    assert.deepEqual(await Promise.all(asked), Array(6).fill("AbortError"));
    const begin = performance.now(), answer = await map("it was");
    assert.equal(answer.status, 200);
    assert.ok(performance.now() - begin < 3 * one, "the six were made all the same");
    console.log(`after six long maps that nobody waits for, a short one takes ${(performance.now() - begin).toFixed(0)} ms`);
  }));

test("a long text answers without lag", { skip: !model && "skipped: the model smollm2 is not here" }, () =>
  serving(["--model", "smollm2"], async (address) => {
    const { page, close } = await open(browser, "#heads", {}, address);
    await page.waitForSelector(".heads li", { timeout: 60000 });
    await page.fill(".wide input", "The quick brown fox jumps over the lazy dog. ".repeat(80));
    await page.click("button:text-is(\"map\")");
    await page.waitForFunction(() => document.querySelectorAll(".text button").length > 700, undefined, { timeout: 120000 });
    await page.waitForSelector("canvas.head");
    await page.waitForSelector(".grid canvas");
    const milliseconds = await page.evaluate(async () => {
      const times = [], canvas = document.querySelector(".grid canvas");
      for (let n = 0; n < 5; ++n) {
        const begin = performance.now();
        canvas.focus();
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key: n % 2 ? "ArrowUp" : "ArrowDown", bubbles: true }));
        await new Promise((done) => setTimeout(done, 0));
        document.body.offsetHeight;
        times.push(performance.now() - begin);
      }
      return times.sort((a, b) => a - b)[2];
    });
    console.log(`${await page.$$eval(".text button", (all) => all.length)} tokens: ${milliseconds.toFixed(0)} ms to answer a key`);
    await close();
  }));

test("200 malformed requests leave it serving", () => serving([], async (address) => {
  const { hostname, port } = new URL(address);
  const lines = ["GET / HTTP/9.9", "BREW /coffee HTTP/1.1", "GET /../../etc/passwd HTTP/1.1", "POST /api/map HTTP/1.1\r\nContent-Length: 99999999999",
    "GET /api/ranking?id=&from=-1 HTTP/1.1", "\0\x01\x02", "GET / HTTP/1.1\r\nHost: evil.example", `GET /${"a".repeat(20000)} HTTP/1.1`,
    "POST /api/map HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{\"te", "PUT / HTTP/1.1"];
  await Promise.all(Array.from({ length: 200 }, (_, n) => new Promise((done) => {
    const socket = connect(Number(port), hostname, () => {
      const line = lines[n % lines.length];
      socket.write(line + (line.includes("Host:") ? "" : `\r\nHost: ${hostname}:${port}`) + "\r\n\r\n");
      setTimeout(() => socket.destroy(), 100 + n);
    });
    socket.on("error", () => {});
    socket.on("data", () => {});
    socket.on("close", done);
  })));
  const response = await fetch(address);
  assert.equal(response.status, 200);
  assert.match(await response.text(), /attention you can touch/);
}));
