// Attention by hand: every table from tokens to outputs, and where each number comes from.
import { useMemo, useState } from "preact/hooks";
import type { Matrix, Mistake, Specification, Trace, Values } from "./engine";
import { number } from "./format";
import * as change from "./state";
import { Table } from "./table";
import { TITLES, columnsOf, explanation, sourceOf, type Place } from "./why";

interface Props {
  specification: Specification;
  trace: Trace;
  mistakes: Mistake[];
  head: number;
  onHead: (head: number) => void;
  onChange: (specification: Specification) => void;
}

export function Hand({ specification, trace, mistakes, head, onHead, onChange }: Props) {
  const [focus, setFocus] = useState<Place>();
  // Another table may have been entered meanwhile.
  const leave = (name: string) => setFocus((now) => (now?.matrix === name ? undefined : now));
  const shownHead = Math.min(head, trace.heads.length - 1), one = trace.heads[shownHead];
  const several = trace.heads.length > 1, tokens = trace.tokens;
  const of = several ? ` of head ${shownHead}` : "";
  const inputs = (name: "x" | "wq" | "wk" | "wv" | "q" | "k" | "v", values: Values, rows?: string[]) => (
    <Table name={name} title={TITLES[name]} values={values} rows={rows} tint="sign" focus={focus}
      source={sourceOf(focus, trace, shownHead, name)} onFocus={setFocus} onLeave={leave}
      changed={(row) => change.isReplaced(specification, name, row)}
      onEdit={(row, column, value) => onChange(change.setNumber(specification, name, row, column, value, values as Matrix))} />
  );
  const table = (name: string, title: string, values: Values, options: Partial<Parameters<typeof Table>[0]> = {}) => (
    <Table name={name} title={title} values={values} rows={tokens} columns={tokens} focus={focus} onFocus={setFocus} onLeave={leave}
      source={sourceOf(focus, trace, shownHead, name)} {...options} />
  );
  return (
    <>
      <Switches specification={specification} trace={trace} mistakes={mistakes} head={shownHead} onHead={onHead} onChange={onChange} />
      <div class="steps">
        <section>
          <h2><b>0</b> What goes in</h2>
          <Tokens specification={specification} onChange={onChange} />
          {trace.x && specification.x ? (
            <div class="side">
              {inputs("x", trace.x, tokens)}
              {inputs("wq", trace.wq!)}
              {inputs("wk", trace.wk!)}
              {inputs("wv", trace.wv!)}
            </div>
          ) : <p class="note">q, k and v are given themselves, below.</p>}
          <Sizes specification={specification} trace={trace} onChange={onChange} />
        </section>
        <section>
          <h2><b>1</b> Queries, keys, values</h2>
          <p class="lead">{trace.x ? "Each token's row of X times three matrices:" : "Given:"} what it asks, what it answers to, what it has to give.</p>
          <div class="side">
            {inputs("q", trace.q, tokens)}
            {inputs("k", trace.k, tokens)}
            {inputs("v", trace.v, tokens)}
          </div>
        </section>
        <section>
          <h2><b>2</b> Scores</h2>
          <p class="lead">Every query times every key{of}: how well they match.</p>
          {table("scores", `q·kᵀ${of}`, one.scores, { tint: "sign" })}
        </section>
        <section>
          <h2><b>3</b> Scale and mask</h2>
          <p class="lead">Times {number(trace.scale, 4)}{specification.causal ? "; what lies ahead of a token becomes −∞" : "; nothing is hidden"}.</p>
          <div class="side">
            {table("scaled", "scaled", one.scaled, { tint: "sign" })}
            {one.softcapped && table("softcapped", "softcapped", one.softcapped, { tint: "sign" })}
            {one.biased && table("biased", "with ALiBi", one.biased, { tint: "sign" })}
            {table("masked", "masked", one.masked, { tint: "sign" })}
          </div>
        </section>
        <section>
          <h2><b>4</b> Weights</h2>
          <p class="lead">Softmax of each row: positive, and 1 in all.</p>
          {table("weights", `weights${of}`, one.weights, { tint: "weight", wrong: trace.mistakenWeights?.[shownHead] })}
        </section>
        <section>
          <h2><b>5</b> Outputs</h2>
          <p class="lead">Each row's weights times the values: a mixture.</p>
          {table("out", several ? `out, heads side by side` : "out", trace.out,
            { columns: undefined, tint: "sign", wrong: trace.mistakenOut })}
        </section>
      </div>
      <Why focus={focus} trace={trace} head={shownHead} />
    </>
  );
}

function Why({ focus, trace, head }: { focus?: Place; trace: Trace; head: number }) {
  const owner = focus?.matrix === "out" ? Math.floor(focus.column / columnsOf(trace, "v", 0)[1]) : head;
  let text = "Point at a number, or reach it with Tab and the arrow keys: what made it lights up, and the sum stands here.";
  try {
    if (focus) text = explanation(focus, trace, owner);
  } catch {
    // The tables have changed under the pointer; the next move is about the new ones.
  }
  return <aside class="why" role="status" aria-live="polite">{text}</aside>;
}

function Tokens({ specification, onChange }: { specification: Specification; onChange: Props["onChange"] }) {
  const { tokens } = specification;
  return (
    <div class="tokens" role="group" aria-label="Tokens">
      {tokens.map((token, row) => (
        <span class="token">
          <input aria-label={`Token ${row}`} value={token} size={Math.max(4, token.length)}
            onChange={(event) => {
              const name = event.currentTarget.value.trim();
              if (name) onChange({ ...specification, tokens: tokens.map((one, r) => (r === row ? name : one)) });
            }} />
          {tokens.length > 1 && (
            <button class="quiet" aria-label={`Remove token ${token}`} title="Remove" onClick={() => onChange(change.removeToken(specification, row))}>×</button>
          )}
        </span>
      ))}
      {tokens.length < change.MOST_TOKENS && <button class="quiet" onClick={() => onChange(change.addToken(specification))}>+ token</button>}
    </div>
  );
}

function Sizes({ specification, trace, onChange }: { specification: Specification; trace: Trace; onChange: Props["onChange"] }) {
  const [problem, setProblem] = useState("");
  const sizes: ["x" | "key" | "value", string, number][] = [
    ...(trace.x ? [["x", "columns of X", trace.x[0].length] as ["x", string, number]] : []),
    ["key", "columns of q and k", trace.q[0].length],
    ["value", "columns of v", trace.v[0].length],
  ];
  const paste = (name: "x" | "wq" | "wk" | "wv" | "q" | "k" | "v") => {
    const text = window.prompt(`Rows of ${TITLES[name]}, a line each (or [[1, 2], [3, 4]]):`);
    if (text === null) return;
    const matrix = change.parseMatrix(text);
    setProblem(matrix ? "" : `${TITLES[name]}: these are no rows of numbers of equal length; write a row a line, numbers separated by blanks`);
    if (!matrix) return;
    let next = change.setMatrix(specification, name, matrix);
    if (["x", "q", "k", "v"].includes(name) && matrix.length !== specification.tokens.length)
      next = { ...next, tokens: matrix.map((_, row) => specification.tokens[row] ?? `token ${row + 1}`) };
    onChange(next);
  };
  const names = (trace.x ? ["x", "wq", "wk", "wv"] : ["q", "k", "v"]) as Parameters<typeof paste>[0][];
  return (
    <details class="sizes">
      <summary>Sizes, pasting</summary>
      {sizes.map(([what, label, size]) => (
        <span class="size">
          {label}: {size}
          <button class="quiet" aria-label={`Fewer ${label}`} disabled={size <= 1} onClick={() => onChange(change.resize(specification, what, -1))}>−</button>
          <button class="quiet" aria-label={`More ${label}`} disabled={size >= 64} onClick={() => onChange(change.resize(specification, what, 1))}>+</button>
        </span>
      ))}
      <span class="size">paste {names.map((name) => <button class="quiet" onClick={() => paste(name)}>{TITLES[name]}</button>)}</span>
      {trace.x && (
        <button class="quiet" onClick={() => onChange(change.detached(specification, trace.q as Matrix, trace.k as Matrix, trace.v as Matrix))}>
          leave X away: q, k and v as numbers of their own
        </button>
      )}
      {(specification.replaced ?? []).length > 0 && (
        <button class="quiet" onClick={() => onChange({ ...specification, replaced: undefined })}>take back changes of q, k, v</button>
      )}
      {problem && <p class="problem" role="alert">{problem}</p>}
    </details>
  );
}

const reach = (keys: number | null) => (keys === null ? "all" : keys === 1 ? "1 key" : `${keys} keys`);

/** What attn explain has given beyond the switches, in words: it can be taken away here. */
const OTHERS: { [key in keyof Specification]?: (specification: Specification) => string } = {
  softcap: ({ softcap }) => `softcap ${softcap}`,
  window: ({ window }) => `window: ${reach(window![0])} back, ${reach(window![1])} ahead`,
  sink_tokens: ({ sink_tokens }) => `the first ${sink_tokens} always seen`,
  alibi: () => "ALiBi",
  offset: ({ offset }) => `queries begin at key ${offset}`,
  length: ({ length }) => `only the first ${length} keys`,
};

type SwitchProps = Pick<Props, "specification" | "trace" | "mistakes" | "head" | "onHead" | "onChange">;

function Switches({ specification, trace, mistakes, head, onHead, onChange }: SwitchProps) {
  const without = (key: keyof Specification) => {
    const { [key]: _, ...rest } = specification;
    return rest as Specification;
  };
  const columns = [trace.q[0].length, trace.v[0].length];
  const counts = Array.from({ length: 16 }, (_, n) => n + 1).filter((heads) => columns.every((width) => width % heads === 0));
  const { mistake } = trace;
  const catalogue = useMemo(() => mistakes.map((one) => <option value={one.id}>{one.id}: {one.name}</option>), [mistakes]);
  return (
    <div class="switches">
      <label><input type="checkbox" checked={Boolean(specification.causal)}
        onChange={(event) => onChange(event.currentTarget.checked ? { ...specification, causal: true } : without("causal"))} /> causal mask</label>
      <label><input type="checkbox" checked={specification.scale === undefined}
        onChange={(event) => onChange(event.currentTarget.checked ? without("scale") : { ...specification, scale: 1 })} /> scale by 1/√d</label>
      <label>heads{" "}
        <select value={String(trace.heads.length)} onChange={(event) => onChange({ ...specification, heads: Number(event.currentTarget.value) })}>
          {counts.map((heads) => <option value={String(heads)}>{heads}</option>)}
        </select>
      </label>
      {trace.heads.length > 1 && (
        <label>showing head{" "}
          <select value={String(head)} onChange={(event) => onHead(Number(event.currentTarget.value))}>
            {trace.heads.map((_, h) => <option value={String(h)}>{h}</option>)}
          </select>
        </label>
      )}
      <label>break it{" "}
        <select value={specification.mistake ?? ""} onChange={(event) => {
          const id = event.currentTarget.value;
          onChange(id ? { ...specification, mistake: id } : without("mistake"));
        }}>
          <option value="">not at all</option>
          {catalogue}
        </select>
      </label>
      {(Object.keys(OTHERS) as (keyof Specification)[]).filter((key) => specification[key] !== undefined).map((key) => (
        <span class="token">{OTHERS[key]!(specification)}
          <button class="quiet" aria-label={`Without ${OTHERS[key]!(specification)}`} title="Leave out" onClick={() => onChange(without(key))}>×</button>
        </span>
      ))}
      {mistake && (
        <p class="mistake" role="status">
          <b>{mistake.name}.</b> {mistake.what} <i>{mistake.fix}</i>{" "}
          {mistake.shows ? `What it changes is marked, its number below the right one${mistake.note ? ` (${mistake.note})` : ""}.`
            : "These numbers can't show it: they stay what they are."}
        </p>
      )}
    </div>
  );
}

