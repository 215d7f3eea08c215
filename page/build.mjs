// node page/build.mjs ENGINE.js OUT.html   bundles the page into one file: script, style and the WebAssembly inside the script
import { build } from "esbuild";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [engine, out] = process.argv.slice(2).map((path) => resolve(path));
const bundle = await build({
  entryPoints: [join(here, "src/main.tsx")],
  bundle: true,
  minify: true,
  write: false,
  outdir: "memory",
  format: "iife",
  target: ["es2020"],
  jsx: "automatic",
  jsxImportSource: "preact",
  alias: { "attn-engine": engine, "attn-engine-wasm": engine.replace(/js$/, "wasm") },
  loader: { ".wasm": "binary" },
  define: { "import.meta.url": "document.baseURI" },
  logLevel: "warning",
});
const file = (ending) => bundle.outputFiles.find((one) => one.path.endsWith(ending)).text;
// Nothing in the script may end it.
const script = file(".js").replace(/<\/script/g, "<\\/script").replace(/<!--/g, "<\\!--");
const parts = { style: () => file(".css"), script: () => script };
const html = readFileSync(join(here, "src/index.html"), "utf8").replace(/<!-- (style|script) -->/g, (_, part) => parts[part]());
writeFileSync(`${out}.new`, html);
renameSync(`${out}.new`, out);
console.log(`${out}: ${(html.length / 1024).toFixed(0)} KiB`);
