// The page as a person uses it: numbers, switches, links, keys, small screens, dark mode, and nothing from elsewhere.
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, mkdirSync } from "node:fs";
import { after, before, test } from "node:test";
import { cell, digits, eventually, focused, launch, open, PAGE, saved, shown, type } from "./browser.mjs";

const SPEC = new URL("../../../shared/spec/by-hand.json", import.meta.url).pathname;
const PICTURES = process.env.ATTN_PICTURES;
let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

/** Opens, runs, and holds the page to it that nothing went wrong in it. */
async function on(hash, use, options) {
  const opened = await open(browser, hash, options);
  try {
    await use(opened.page);
    assert.deepEqual(opened.problems, []);
  } finally {
    await opened.close();
  }
}

const near = (actual, expected) => assert.deepEqual(actual.map((row) => row.length), expected.map((row) => row.length)) ?? actual.forEach((row, r) => row.forEach((value, c) =>
  assert.ok(value === expected[r][c] || Math.abs(value - expected[r][c]) < 1e-12, `${value} is not ${expected[r][c]}`)));

test("the worked example has the numbers of the specification", { skip: !existsSync(SPEC) && "skipped: by-hand.json is not here" }, () =>
  on("", async (page) => {
    const { expect } = JSON.parse(readFileSync(SPEC, "utf8"));
    for (const name of ["q", "k", "v", "scores"]) near(await digits(page, name), expect[name]);
    near(await digits(page, "weights"), expect.weights_full);
    near(await digits(page, "out"), expect.out_full);
    await eventually(() => shown(page, "weights"), expect.weights_3dp.map((row) => row.map(String)));
    await eventually(() => shown(page, "masked"), expect.scaled_masked_3dp.map((row) => row.map((value) => (value === "-inf" ? "−∞" : String(value)))));
  }));

test("the worked example stands without any file beside it", () => on("", async (page) => {
  await eventually(() => shown(page, "weights"), [["1", "0", "0"], ["0.5", "0.5", "0"], ["0.673", "0.164", "0.164"]]);
  await eventually(async () => (await shown(page, "out"))[2], ["2.182", "0.818"]);
}));

test("the key of 4471 changed to (2, 0) gives it 0.670 and 0.330", () => on("", async (page) => {
  await type(page, cell("k", 1, 0), "2");
  await type(page, cell("k", 1, 1), "0");
  await eventually(async () => (await shown(page, "weights"))[1], ["0.67", "0.33", "0"]);
  await eventually(async () => decodeURIComponent(page.url()), /"values":\[2,0\]/);
  const link = page.url();
  await on(new URL(link).hash, async (again) => eventually(async () => (await shown(again, "weights"))[1], ["0.67", "0.33", "0"]));
  await page.click('[aria-label="Undo"]');
  await page.click('[aria-label="Undo"]');
  await eventually(async () => (await shown(page, "weights"))[1], ["0.5", "0.5", "0"]);
  await page.click('[aria-label="Redo"]');
  await eventually(() => shown(page, "k"), [["2", "1"], ["2", "1"], ["1", "0"]]);
}));

test("switches do what they say", () => on("", async (page) => {
  await page.uncheck("text=causal mask");
  await eventually(async () => (await shown(page, "weights"))[0], ["0.848", "0.05", "0.102"]);
  await page.check("text=causal mask");
  await page.uncheck("text=scale by");
  await eventually(async () => (await shown(page, "weights"))[2], ["0.787", "0.107", "0.107"]);
  await page.check("text=scale by");
  await page.selectOption("text=heads >> select", "2");
  await eventually(async () => (await shown(page, "scores"))[0][0], "4");
  await page.selectOption("text=showing head >> select", "1");
  await eventually(async () => (await shown(page, "scores"))[0][0], "1");
}));

test("every mistake of the catalogue can be made, and marks what it changes", () => on("", async (page) => {
  const ids = await page.$$eval("text=break it >> select >> option", (options) => options.map((option) => option.value).filter(Boolean));
  assert.ok(ids.length >= 50);
  let marked = 0;
  for (const id of ids) {
    await page.selectOption("text=break it >> select", id);
    const cells = await page.$$eval("td.wrong", (all) => all.length), says = await page.textContent(".mistake");
    assert.ok(cells > 0 || says.includes("can't show it"), `${id}: ${says}`);
    marked += cells > 0;
  }
  assert.ok(marked >= 15);
  await page.selectOption("text=break it >> select", "scale-missing");
  await eventually(() => page.textContent(`${cell("weights", 2, 0)} > small`), "0.787");
  await page.selectOption("text=break it >> select", "");
  await eventually(() => page.$$eval("td.wrong", (all) => all.length), 0);
}));

test("a number shows the sum that made it, and lights up its sources", () => on("", async (page) => {
  const why = () => page.textContent(".why");
  await page.hover(cell("scores", 2, 0));
  await eventually(() => why(), "query of “shipped” · key of “order” = 1·2 + 1·1 = 3");
  await eventually(() => page.$$eval("td.source", (all) => all.map((one) => `${one.closest("[data-table]").dataset.table} ${one.parentElement.sectionRowIndex}`)), ["q 2", "q 2", "k 0", "k 0"]);
  await page.focus(cell("weights", 2, 0));
  await eventually(() => why(), "“shipped” on “order”: e^(2.121 − 2.121) / (1 + 0.243 + 0.243) ≈ 1 / 1.486 ≈ 0.673");
  await page.focus(cell("masked", 0, 1));
  await eventually(() => why(), /may not see “4471”/);
  await page.focus(cell("out", 2, 0));
  await eventually(() => why(), /0.673·3 \+ 0.164·0 \+ 0.164·1 ≈ 2.182/);
  await page.focus(cell("q", 0, 0));
  await eventually(() => why(), /X · W_Q = 1·1 \+ 0·0 \+ 1·1 \+ 0·0 = 2/);
  await page.focus(cell("scaled", 0, 0));
  await eventually(() => why(), "5 × 0.7071 ≈ 3.536");
}));

test("tokens and sizes come and go", () => on("", async (page) => {
  await page.click("text=+ token");
  await eventually(async () => (await shown(page, "weights")).length, 4);
  await page.click('[aria-label="Remove token 4471"]');
  await eventually(async () => (await shown(page, "weights")).length, 3);
  await page.click("summary");
  await page.click('[aria-label="More columns of q and k"]');
  await eventually(async () => (await shown(page, "q"))[0].length, 3);
  await page.click('[aria-label="Fewer columns of X"]');
  await eventually(async () => (await shown(page, "x"))[0].length, 3);
  page.once("dialog", (dialog) => dialog.accept("[[1, 2, 3], [4, 5, 6]]"));
  await page.click(".size >> button:text-is(\"X\")");
  await eventually(() => shown(page, "x"), [["1", "2", "3"], ["4", "5", "6"]]);
  page.once("dialog", (dialog) => dialog.accept("1 2\n3"));
  await page.click(".size >> button:text-is(\"X\")");
  await eventually(() => page.textContent(".problem"), /no rows of numbers of equal length/);
  await page.click("text=leave X away");
  await eventually(() => page.$('[data-table="x"]'), null);
  await eventually(async () => (await shown(page, "q")).length, 2);
}));

test("what is no number is not taken", () => on("", async (page) => {
  await type(page, cell("x", 0, 0), "seven", "Tab");
  assert.ok(await page.$eval(`${cell("x", 0, 0)} > input`, (input) => input.classList.contains("bad")));
  await eventually(async () => (await shown(page, "scores"))[0], ["5", "1", "2"]);
  await type(page, cell("x", 0, 0), "−1,5");
  await eventually(async () => (await shown(page, "q"))[0], ["−0.5", "1"]);
}));

test("what attn explain gives beyond the switches is named, and can be left out", async () => {
  const specification = { tokens: ["a", "b", "c"], q: [[1], [2], [3]], k: [[1], [2], [3]], v: [[1], [2], [3]], softcap: 2, window: [1, null],
    sink_tokens: 1, alibi: true, length: 2, offset: -1, causal: true };
  await on("#hand:" + encodeURIComponent(JSON.stringify({ specification })), async (page) => {
    const others = () => page.$$eval(".switches .token", (all) => all.map((one) => one.firstChild.nodeValue));
    assert.deepEqual(await others(), ["softcap 2", "window: 1 key back, all ahead", "the first 1 always seen", "ALiBi", "queries begin at key -1", "only the first 2 keys"]);
    assert.deepEqual(await shown(page, "weights"), [["0", "0", "0"], ["1", "0", "0"], ["0.454", "0.546", "0"]]);
    await page.hover(cell("biased", 2, 0));
    await eventually(() => page.textContent(".why"), /the score 1\.81, less for a key farther away \(ALiBi\) ≈ /);
    for (let left = 6; left > 0; --left) {
      await page.click(".switches .token button");
      await eventually(async () => (await others()).length, left - 1);
    }
    await eventually(async () => (await shown(page, "weights"))[0], ["1", "0", "0"]);
    assert.equal(await page.$('[data-table="biased"]'), null);
  });
});

test("a row changed by hand is that row, whatever tokens are called, and can be changed back", async () => {
  const specification = { tokens: ["2", "1", "0"], x: [[1], [1], [1]], wq: [[1]], wk: [[1]], wv: [[1]] };
  await on("#hand:" + encodeURIComponent(JSON.stringify({ specification })), async (page) => {
    await type(page, cell("k", 0, 0), "5");
    await eventually(() => shown(page, "k"), [["5"], ["1"], ["1"]]);
    await type(page, cell("k", 0, 0), "6");
    await type(page, cell("v", 2, 0), "7");
    await page.click('[aria-label="Remove token 1"]');
    await eventually(() => shown(page, "v"), [["1"], ["7"]]);
    assert.deepEqual(await shown(page, "k"), [["6"], ["1"]]);
    await page.click("summary");
    await page.click("text=take back changes");
    await eventually(() => shown(page, "k"), [["1"], ["1"]]);
  });
});

test("what is said of a number is true of it: changed rows, other heads, large numbers, mistakes that show", () => on("", async (page) => {
  const why = () => page.textContent(".why"), sources = () => page.$$eval("td.source", (all) => all.map((one) => one.closest("[data-table]").dataset.table));
  await type(page, cell("k", 2, 0), "-2");
  await eventually(why, "k of “shipped”, column 0: changed by hand, to −2.");
  assert.deepEqual(await sources(), []);
  await page.click('[aria-label="Undo"]');
  await page.selectOption("text=heads >> select", "2");
  await page.hover(cell("out", 2, 1));
  await eventually(why, /weights of head 1 · values/);
  assert.deepEqual([...new Set(await sources())], ["v"]);
  await type(page, cell("x", 0, 0), "1e9");
  await eventually(async () => (await shown(page, "x"))[0][0], "1·10⁹");
  assert.equal(await page.inputValue(`${cell("x", 0, 0)} > input`), "1000000000");
  await type(page, cell("x", 0, 0), "1");
  await eventually(async () => (await shown(page, "x"))[0][0], "1");
  await page.selectOption("text=heads >> select", "1");
  await page.focus("text=break it >> select");
  await eventually(() => page.$$eval("optgroup", (all) => all.length), 2);
  for (const id of await page.$$eval("optgroup:first-of-type > option", (all) => all.map((one) => one.value))) {
    await page.selectOption("text=break it >> select", id);
    assert.ok((await page.$$("td.wrong")).length > 0, id);
  }
}));

test("tiles end where plain attention ends", () => on("#tiles", async (page) => {
  for (let step = 0; step < 3; ++step) await page.click('[aria-label="Step"]');
  await eventually(() => page.textContent(".done"), /equal to the plain result, \(2.182, 0.818\)/);
  await page.click('[aria-label="Step back"]');
  await eventually(() => page.textContent(".player"), /tile 2 of 3/);
  await page.click('[aria-label="To the beginning"]');
  await page.click('[aria-label="Play"]');
  await page.waitForSelector("text=tile 1 of 3", { timeout: 3000 });
  await page.click('[aria-label="Pause"]');
  await page.fill("text=keys per tile >> input", "2");
  await page.press("text=keys per tile >> input", "Enter");
  await page.click('[aria-label="Step"]');
  await page.click('[aria-label="Step"]');
  await eventually(() => page.textContent(".done"), /equal to the plain result/);
}));

test("the cache gives every token the bits of the whole, and counts what it saves", () => on("#cache", async (page) => {
  for (let token = 0; token < 3; ++token) {
    await eventually(() => page.textContent(".story"), /to the last bit that of the whole text/);
    if (token < 2) await page.click('[aria-label="The next token"]');
  }
  await eventually(() => page.textContent(".done"), /3 rows and 4 scores/);
}));

test("why √d: spread, weights and gradient follow the slider", () => on("#scale", async (page) => {
  const gradients = async () => (await page.$$eval(".figure-line b", (all) => all.map((one) => one.title).filter(Boolean))).map(Number);
  const [plain, scaled, own] = await gradients();
  assert.ok(plain < 0.1 && scaled > 0.2 && own < 1e-4);
  await page.fill('[aria-label="d, the head dimension"]', "1");
  const [one, other] = await gradients();
  assert.ok(Math.abs(one - other) < 1e-12);
  await page.click("button:text-is(\"1, 0, −1\")");
  await eventually(() => page.textContent("main"), /0\.665/);
}));

test("what it costs follows the tokens, and the browser's own time is measured", () => on("#cost", async (page) => {
  await eventually(() => page.textContent("main"), /512,512,000/);
  await page.fill('[aria-label="tokens"]', "1");
  await eventually(() => page.textContent("output"), /1,000,000/);
  await page.click("text=measure");
  await page.waitForSelector('[aria-label*="256 tokens"]');
}));

test("everything can be reached with the keyboard alone", () => on("", async (page) => {
  const seen = new Set();
  for (let n = 0; n < 140; ++n) {
    await page.keyboard.press("Tab");
    seen.add(await focused(page));
  }
  for (const what of ["Tiles", "x 0 0", "k 1 0", "scores 0 0", "weights 2 2", "out 2 1", "copy link"]) assert.ok(seen.has(what), what);
  await page.focus(cell("scores", 0, 0));
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(page), "scores 1 1");
  await page.keyboard.press("Alt+3");
  await eventually(() => page.textContent("main"), /The cache/);
  await page.keyboard.press("Alt+1");
  await page.focus(cell("x", 0, 0));
  await page.keyboard.press("Alt+ArrowUp");
  await eventually(() => page.inputValue(`${cell("x", 0, 0)} > input`), "2");
  await page.focus(cell("scores", 0, 0));
  await page.keyboard.press("Control+z");
  await eventually(async () => (await shown(page, "x"))[0][0], "1");
}));

test("tables are saved as CSV with all digits, pictures as SVG and PNG", () => on("", async (page) => {
  const csv = String(await saved(page, '[data-table="weights"] >> text=CSV'));
  assert.equal(csv.split("\n")[0], ",order,4471,shipped");
  assert.equal(csv.split("\n")[3], "shipped,0.672841798375977,0.16357910081201152,0.16357910081201152");
  await page.click("text=Why √d");
  assert.match(String(await saved(page, ".chart >> text=SVG")), /^<svg[^]*score/);
  const png = await saved(page, ".chart >> text=PNG");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
}));

test("a broken or strange address shows the beginning, or a sentence", async () => {
  for (const hash of ["#hand:%7Bbroken", "#nonsense", "#hand:%FF", "#scale:" + encodeURIComponent('{"scale":{"dim":1e9}}')])
    await on(hash, async (page) => assert.ok(await page.$("main")));
  const wrong = { specification: { tokens: ["a"], q: [[1]], k: [[1, 2]], v: [[1]] } };
  await on("#hand:" + encodeURIComponent(JSON.stringify(wrong)), async (page) => await eventually(() => page.textContent(".problem"), /k/));
});

test("what an address says that makes no sense is as if it were not said, or told", async () => {
  const one = { tokens: ["a"], q: [[1]], k: [[1]], v: [[1]] };
  for (const [part, sentence] of [
    [{ window: null, alibi: false, softcap: null, scale: null }, undefined], [{ window: 5 }, /window: not \[left, right\]/], [{ tokens: [] }, /./],
    [{ heads: 3 }, /heads/], [{ replaced: 7 }, /replaced/], [{ mistake: "none-such" }, /mistake/], [{ q: [["x"]] }, /q/], [{ tiles: -1 }, undefined],
    [{ tokens: ["x".repeat(300)] }, /tokens/], [{ length: 9 }, /length/],
  ]) {
    await on("#hand:" + encodeURIComponent(JSON.stringify({ specification: { ...one, ...part }, head: 99, step: 1e9, query: 1e9 })), async (page) => {
      if (sentence) return eventually(() => page.textContent(".problem"), sentence);
      assert.deepEqual(await shown(page, "weights"), [["1"]]);
      assert.equal((await page.$$(".switches .token")).length, 0);
      assert.ok(await page.isChecked("text=scale by"));
    });
  }
  const deep = `{"specification":{"tokens":["a"],"q":[[1]],"k":[[1]],"v":[[1]],"x":${"[".repeat(4000)}${"]".repeat(4000)}}}`;
  await on("#hand:" + encodeURIComponent(deep), async (page) => eventually(() => page.textContent(".problem"), /nested too deeply/));
  const cost = { tokens: 1000, heads: 1e308, kvHeads: 8, headDim: 128, layers: 32, causal: true };
  await on("#cost:" + encodeURIComponent(JSON.stringify({ cost })), async (page) => eventually(() => page.textContent("main"), /512,512,000/));
});

test("pasted matrices of another size fit the others to them", () => on("", async (page) => {
  const paste = async (name, text) => {
    page.once("dialog", (dialog) => dialog.accept(text));
    await page.click(`.size >> button:text-is("${name}")`);
  };
  const sizes = async (...names) => Promise.all(names.map(async (name) => (await shown(page, name)).map((row) => row.length)));
  await page.click("summary");
  await type(page, cell("k", 2, 0), "9");
  await paste("W_Q", "1 0 0\n0 1 0\n0 0 1");
  await eventually(() => sizes("x", "wq", "wk", "wv", "q", "k", "v"), [[3, 3, 3], [3, 3, 3], [3, 3, 3], [2, 2, 2], [3, 3, 3], [3, 3, 3], [2, 2, 2]]);
  await paste("X", "1 2 3");
  await eventually(() => sizes("x", "q", "weights"), [[3], [3], [1]]);
  await page.click("text=leave X away");
  await eventually(() => page.$('[data-table="x"]'), null);
  await paste("k", "1 2\n3 4\n5 6\n7 8");
  await eventually(() => sizes("q", "k", "v", "weights"), [[2, 2, 2, 2], [2, 2, 2, 2], [2, 2, 2, 2], [4, 4, 4, 4]]);
  await page.selectOption("text=heads >> select", "2");
  await page.click('[aria-label="Fewer columns of v"]');
  await eventually(() => sizes("v", "out"), [[1, 1, 1, 1], [1, 1, 1, 1]]);
  await page.click("text=Tiles");
  await page.fill("text=keys per tile >> input", "1e17");
  await page.press("text=keys per tile >> input", "Enter");
  await eventually(() => page.inputValue("text=keys per tile >> input"), "4");
}));

test("what is typed is not lost: stepping from it, names that grow, digits that a field does not show, marked fields", () => on("", async (page) => {
  await page.click(cell("x", 0, 0));
  await page.fill(`${cell("x", 0, 0)} > input`, "7");
  await page.keyboard.press("Alt+ArrowUp");
  await eventually(async () => (await shown(page, "x"))[0][0], "8");
  await page.fill('[aria-label="Token 0"]', "a much longer name than before");
  await page.click("text=+ token");
  await eventually(async () => (await shown(page, "weights")).length, 4);
  await page.fill('[aria-label="Token 1"]', "é".repeat(60));
  await page.keyboard.press("Enter");
  await eventually(() => page.inputValue('[aria-label="Token 1"]'), "é".repeat(32));
  await type(page, cell("x", 1, 1), "0.123456789012");
  await page.keyboard.press("Alt+ArrowUp");
  await eventually(async () => (await digits(page, "x"))[1][1], 1.123456789012);
  await type(page, cell("x", 1, 2), "seven", "Tab");
  await type(page, cell("x", 0, 1), "1000");
  assert.equal(await page.inputValue(`${cell("x", 1, 2)} > input`), "seven");
  await page.keyboard.press("Control+z");
  await eventually(async () => (await shown(page, "x"))[0][1], "0");
}));

test("nothing is wider than the screen at 400 pixels", async () => {
  for (const view of ["hand", "tiles", "cache", "scale", "cost", "heads"]) {
    await on(`#${view}`, async (page) => {
      const [content, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(content <= room, `${view}: ${content} of ${room}`);
    }, { viewport: { width: 400, height: 800 } });
  }
});

test("dark mode follows the system, and can be chosen", async () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await on("", async (page) => assert.equal(await background(page), "rgb(22, 24, 28)"), { colorScheme: "dark" });
  await on("", async (page) => {
    assert.equal(await background(page), "rgb(251, 250, 248)");
    await page.click("text=auto");
    assert.equal(await background(page), "rgb(22, 24, 28)");
  });
});

test("figures: weight, time to the first number, time to update", async () => {
  const size = statSync(PAGE).size, random = (n, c, name) => ((n * 7 + c * 3 + name.charCodeAt(0)) % 11) / 5 - 1;
  const ofTokens = (tokens) => {
    const matrix = (name) => Array.from({ length: tokens }, (_, n) => Array.from({ length: 8 }, (_, c) => random(n, c, name)));
    return { tokens: Array.from({ length: tokens }, (_, n) => `t${n}`), q: matrix("q"), k: matrix("k"), v: matrix("v"), causal: true };
  };
  /** Milliseconds from a key, or a click on the switch of the scale, to all numbers in their places, and to the frame that shows them. */
  const update = async (tokens, change) => {
    let medians;
    await on("#hand:" + encodeURIComponent(JSON.stringify({ specification: ofTokens(tokens) })), async (page) => {
      await page.focus(cell("q", 1, 1));
      medians = await page.evaluate(async (change) => {
        const times = [], field = document.activeElement, scale = document.querySelectorAll('.switches input[type="checkbox"]')[1];
        for (let n = 0; n < 15; ++n) {
          const begin = performance.now();
          if (change === "scale") scale.click();
          else field.dispatchEvent(new KeyboardEvent("keydown", { key: n % 2 ? "ArrowDown" : "ArrowUp", altKey: true, bubbles: true }));
          for (let m = 0; m < 4; ++m) await Promise.resolve(); // drawn
          document.body.offsetHeight; // laid out
          const inPlace = performance.now();
          await new Promise((done) => requestAnimationFrame(() => {
            const channel = new MessageChannel();
            channel.port1.onmessage = done;
            channel.port2.postMessage(0);
          }));
          times.push([inPlace - begin, performance.now() - begin]);
          await new Promise((done) => setTimeout(done, 300));
        }
        return [0, 1].map((which) => times.map((each) => each[which]).sort((a, b) => a - b)[7]);
      }, change);
    });
    return medians.map((one) => one.toFixed(1)).join(", painted after ");
  };
  let ready;
  await on("", async (page) => { ready = Number(await page.evaluate(() => document.documentElement.dataset.readyMs)); });
  console.log(`page ${(size / 1024).toFixed(0)} KiB; first number after ${ready} ms; milliseconds until an edit's numbers are in place:`);
  for (const tokens of [8, 64]) console.log(`${tokens} tokens: a query ${await update(tokens, "query")}; the scale ${await update(tokens, "scale")}`);
  assert.ok(size < 2 * 1024 * 1024);
});

test("pictures for the documentation", { skip: !PICTURES && "skipped: ATTN_PICTURES names no folder" }, async () => {
  mkdirSync(PICTURES, { recursive: true });
  for (const [name, hash, options] of [
    ["explorer", "", { viewport: { width: 1280, height: 1150 } }], ["explorer-phone", "", { viewport: { width: 400, height: 900 } }],
    ["explorer-dark", "#scale", { colorScheme: "dark", viewport: { width: 1280, height: 900 } }],
  ]) {
    await on(hash, async (page) => {
      if (!hash) await page.focus(cell("weights", 2, 0));
      await page.screenshot({ path: `${PICTURES}/${name}.png` });
    }, options);
  }
});
