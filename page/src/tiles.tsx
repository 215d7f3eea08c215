// FlashAttention's way: tile by tile, with a running maximum and sum, and no table.
import { useEffect, useState } from "preact/hooks";
import type { Trace, Value } from "./engine";
import { Field } from "./field";
import { factor, full, number } from "./format";
import { HeadChoice } from "./switches";
import { equals } from "./why";

interface Props {
  trace: Trace;
  head: number;
  onHead: (head: number) => void;
  tile: number;
  query: number;
  step: number;
  onChange: (changed: { tile?: number; query?: number; step?: number }) => void;
}

const equal = (a: Value[], b: Value[]) =>
  a.every((one, n) => one === b[n] || (typeof one === "number" && typeof b[n] === "number" && Math.abs(one - (b[n] as number)) <= 1e-12 * Math.max(1, Math.abs(one))));

const list = (values: Value[]) => `(${values.map((value) => number(value)).join(", ")})`;

/** "old + new + new = sum", and no more than the sum where it is all there is. */
function sumOf(old: string | undefined, added: string[], sum: string, sign: string): string {
  const terms = [...(old ? [old] : []), ...added].join(" + ");
  return terms === sum ? sum : `${terms} ${sign} ${sum}`;
}

export function Tiles({ trace, head, onHead, tile, query, step, onChange }: Props) {
  const [playing, setPlaying] = useState(false);
  const row = Math.min(query, trace.tokens.length - 1), one = trace.heads[head];
  const tiles = one.tiles?.[row] ?? [], last = tiles.length, at = Math.min(step, last);
  useEffect(() => {
    if (!playing) return;
    const timer = setTimeout(() => (at >= last ? setPlaying(false) : onChange({ step: at + 1 })), 1100);
    return () => clearTimeout(timer);
  });
  const seen = new Set(tiles.slice(0, at).flatMap((each) => each.keys));
  const now = at > 0 ? tiles[at - 1] : undefined;
  const before = at > 1 ? tiles[at - 2] : undefined;
  const width = trace.out[0].length / trace.heads.length, offset = head * width;
  const plain = trace.out[row].slice(offset, offset + width);
  const result = now ? now.out.map((value) => (typeof value === "number" && typeof now.sum === "number" ? value / now.sum : value)) : [];
  return (
    <>
      <p class="lead">
        One query reads the keys a few at a time: a tile. It keeps three things: the largest score so far, the sum of exponentials, and
        the mixture of values, not yet divided. The table of scores is never stored.
      </p>
      <div class="switches">
        <label>keys per tile <Field type="number" min={1} max={trace.tokens.length} value={String(tile)} onTake={(text) => {
          const keys = Math.min(trace.tokens.length, Math.max(1, Math.round(Number(text)) || 1));
          onChange({ tile: keys, step: 0 });
          return String(keys);
        }} /></label>
        <label>query{" "}
          <select value={String(row)} onChange={(event) => onChange({ query: Number(event.currentTarget.value), step: 0 })}>
            {trace.tokens.map((token, r) => <option value={String(r)}>{token}</option>)}
          </select>
        </label>
        <HeadChoice count={trace.heads.length} head={head} onHead={onHead} />
        <span class="player">
          <button onClick={() => onChange({ step: 0 })} disabled={at === 0} aria-label="To the beginning">|◀</button>
          <button onClick={() => onChange({ step: at - 1 })} disabled={at === 0} aria-label="Step back">◀</button>
          <button onClick={() => { if (at >= last) onChange({ step: 0 }); setPlaying(!playing); }} aria-label={playing ? "Pause" : "Play"}>{playing ? "❚❚" : "▶"}</button>
          <button onClick={() => onChange({ step: at + 1 })} disabled={at >= last} aria-label="Step">▶|</button>
          <span role="status">{at === 0 ? "nothing read yet" : `tile ${at} of ${last}`}</span>
        </span>
      </div>
      <div class="strip" role="img" aria-label={`Keys that “${trace.tokens[row]}” has read: ${[...seen].map((key) => trace.tokens[key]).join(", ") || "none"}`}>
        {trace.tokens.map((token, key) => {
          const state = now?.keys.includes(key) ? "now" : seen.has(key) ? "seen" : one.masked[row][key] === "-inf" ? "hidden" : "";
          return (
            <span class={`key ${state}`}>
              <b>{token}</b>
              {state === "now" ? number(one.masked[row][key]) : state === "seen" ? "forgotten" : state === "hidden" ? "hidden" : "…"}
            </span>
          );
        })}
      </div>
      <div class="side">
        <figure class="table"><figcaption><span>What is kept</span></figcaption>
          <div class="scroll"><table><tbody>
            <tr><th scope="row">running maximum</th><td title={now && full(now.max)}>{now ? number(now.max) : "−∞"}</td></tr>
            <tr><th scope="row">running sum</th><td title={now && full(now.sum)}>{now ? number(now.sum) : "0"}</td></tr>
            <tr><th scope="row">values, not yet divided</th><td>{now ? now.out.map((value) => number(value)).join(", ") : plain.map(() => "0").join(", ")}</td></tr>
          </tbody></table></div>
        </figure>
        <div class="story">
          {now ? (
            <>
              <p><b>New maximum.</b> max({before ? number(before.max) : "−∞"}, {now.keys.map((key) => number(one.masked[row][key])).join(", ")}) = {number(now.max)}</p>
              <p><b>Rescale what is old.</b> {before ? <>e^({number(before.max)} − {factor(now.max)}) {equals(before.max, now.max, now.rescale)} {number(now.rescale)}: the old sum and values are multiplied by it.</> : "There is nothing old yet."}</p>
              <p><b>Add the tile.</b> {now.keys.map((key, n) => `e^(${number(one.masked[row][key])} − ${factor(now.max)}) ${equals(one.masked[row][key], now.max, now.exps[n])} ${number(now.exps[n])}`).join(", ")}.
                The sum becomes {sumOf(before && `${number(before.sum)}·${number(now.rescale)}`, now.exps.map((exp) => number(exp)), number(now.sum), equals(...now.exps, now.sum))},
                the values {sumOf(before && `${number(now.rescale)}·${list(before.out)}`, now.keys.map((key, n) => `${number(now.exps[n])}·${list(trace.v[key].slice(offset, offset + width))}`), list(now.out), equals(...now.exps, ...now.out))}.</p>
              {at === last && (
                <p class="done"><b>Divide once.</b> {list(now.out)} / {number(now.sum)} {equals(...now.out, now.sum, ...result)} {list(result)}:{" "}
                  {equal(result, plain) ? "equal to the plain result" : "not the plain result"}, {list(plain)}.</p>
              )}
            </>
          ) : last === 0 ? <p>“{trace.tokens[row]}” sees no key: its output is 0.</p>
            : <p>Step, or play. “{trace.tokens[row]}” reads {last} {last === 1 ? "tile" : "tiles"}; those in which it sees no key are skipped.</p>}
        </div>
      </div>
    </>
  );
}
