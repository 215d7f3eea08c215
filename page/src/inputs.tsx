// What goes in: tokens, and the sizes of what belongs to them.
import { useState } from "preact/hooks";
import * as change from "./changes";
import type { Matrix, Specification, Trace } from "./engine";
import { Field } from "./field";
import type { Props } from "./hand";
import { TITLES } from "./why";

export function Tokens({ specification, onChange }: { specification: Specification; onChange: Props["onChange"] }) {
  const { tokens } = specification;
  return (
    <div class="tokens" role="group" aria-label="Tokens">
      {tokens.map((token, row) => (
        <span class="token">
          <Field aria-label={`Token ${row}`} value={token} grows onTake={(text) => {
            const name = change.shortName(text.trim()) || token;
            if (name !== token) onChange({ ...specification, tokens: tokens.map((one, r) => (r === row ? name : one)) });
            return name;
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

export function Sizes({ specification, trace, onChange }: { specification: Specification; trace: Trace; onChange: Props["onChange"] }) {
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
    onChange(change.setMatrix(specification, name, matrix));
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
