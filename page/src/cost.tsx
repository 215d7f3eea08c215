// What attention costs, from three tokens to a million.
import { useState } from "preact/hooks";
import { Bars, type Bar } from "./chart";
import type { Engine } from "./engine";
import { Field } from "./field";
import { bytes, count, duration } from "./format";
import type { CostSettings } from "./state";

const LEAST = 3, MOST = 1_000_000;
const toSlider = (tokens: number) => Math.log(tokens / LEAST) / Math.log(MOST / LEAST);
const fromSlider = (at: number) => Math.round(LEAST * (MOST / LEAST) ** at);
const TIMED = [64, 128, 256, 512];

interface Props {
  engine: Engine;
  settings: CostSettings;
  onChange: (settings: CostSettings) => void;
}

/** Lengths by the logarithm, from 1 byte to an exabyte: each step to the right is a factor. */
function bar(name: string, value: number): Bar {
  return { name, value, text: bytes(value), length: Math.min(1, Math.log10(Math.max(1, value)) / 18) };
}

export function CostView({ engine, settings, onChange }: Props) {
  const [times, setTimes] = useState<number[]>();
  const { tokens, heads, kvHeads, headDim, layers, causal } = settings;
  const cost = engine.cost(tokens, heads, kvHeads, headDim, layers, causal);
  const field = (label: string, key: "heads" | "kvHeads" | "headDim" | "layers", most: number) => (
    <label>{label} <Field type="number" min={1} max={most} value={String(settings[key])} onTake={(text) => {
      const value = Math.round(Number(text)), isFine = value >= 1 && value <= most;
      if (isFine) onChange({ ...settings, [key]: value });
      return String(isFine ? value : settings[key]);
    }} /></label>
  );
  return (
    <>
      <p class="lead">Every token is compared with every other: ten times the text is a hundred times the scores. Tiles keep the memory small; the operations stay.</p>
      <div class="switches">
        <label class="wide">tokens <output>{count(tokens)}</output>
          <input type="range" min={0} max={1} step={0.001} value={toSlider(tokens)} aria-label="tokens"
            onInput={(event) => onChange({ ...settings, tokens: fromSlider(Number(event.currentTarget.value)) })} />
        </label>
        {field("query heads", "heads", 1024)}{field("key/value heads", "kvHeads", 1024)}{field("head dimension", "headDim", 1024)}{field("layers", "layers", 1024)}
        <label><input type="checkbox" checked={causal} onChange={(event) => onChange({ ...settings, causal: event.currentTarget.checked })} /> causal</label>
      </div>
      <div class="side">
        <figure class="table"><figcaption><span>In all heads and layers</span></figcaption>
          <div class="scroll"><table><tbody>
            <tr><th scope="row">scores</th><td>{count(cost.scores)}</td></tr>
            <tr><th scope="row">operations</th><td>{count(cost.flops)}</td></tr>
            <tr><th scope="row">time at 100 billion a second</th><td>{duration(cost.flops / 1e11)}</td></tr>
          </tbody></table></div>
        </figure>
        <Bars name="memory" title="Memory, on a logarithmic scale" bars={[
          bar("table of scores", cost.table_bytes), bar("KV cache, 16 bits", cost.kv_cache_bytes), bar("scores of a tile", cost.tile_bytes),
        ]} />
      </div>
      <p class="note">Key/value heads may be fewer than query heads, which then share them. A tile is what FlashAttention has in view at a time; only its scores are ever stored.</p>
      <section>
        <h3>In this browser</h3>
        <p class="lead">The plain recipe in float64, one head of dimension 64, run here and now: twice the tokens take four times as long.</p>
        <button onClick={() => setTimes(TIMED.map((n) => engine.time(n, 64)))}>measure</button>
        {times && (
          <Bars name="time" title="Time in this browser" bars={times.map((time, n) => ({
            name: `${TIMED[n]} tokens`, value: time, text: duration(time), length: time / Math.max(...times),
          }))} />
        )}
      </section>
    </>
  );
}
