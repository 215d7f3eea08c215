// Attention by hand: every table from tokens to outputs, and where each number comes from.
import { useState } from "preact/hooks";
import * as change from "./changes";
import type { Engine, Matrix, Mistake, Specification, Trace, Values } from "./engine";
import { number } from "./format";
import { Sizes, Tokens } from "./inputs";
import { Switches } from "./switches";
import { Table } from "./table";
import { TITLES, explanation, headOf, isReplaced, sourceOf, type Place } from "./why";

export interface Props {
  engine: Engine;
  specification: Specification;
  trace: Trace;
  mistakes: Mistake[];
  head: number;
  onHead: (head: number) => void;
  onChange: (specification: Specification) => void;
}

export function Hand(props: Props) {
  const { specification, trace, head, onChange } = props;
  const [focus, setFocus] = useState<Place>();
  // Another table may have been entered meanwhile.
  const leave = (name: string) => setFocus((now) => (now?.matrix === name ? undefined : now));
  const one = trace.heads[head];
  const several = trace.heads.length > 1, tokens = trace.tokens;
  const width = trace.q[0].length / trace.heads.length;
  const of = several ? ` of head ${head}` : "";
  const inputs = (name: "x" | "wq" | "wk" | "wv" | "q" | "k" | "v", values: Values, rows?: string[]) => (
    <Table name={name} title={TITLES[name]} values={values} rows={rows} tint="sign" focus={focus}
      source={sourceOf(focus, trace, head, name)} onFocus={setFocus} onLeave={leave}
      changed={(row) => isReplaced(trace, name, row)}
      onEdit={(row, column, value) => onChange(change.setNumber(specification, name, row, column, value, values as Matrix))} />
  );
  const table = (name: string, title: string, values: Values, options: Partial<Parameters<typeof Table>[0]> = {}) => (
    <Table name={name} title={title} file={several && name !== "out" ? `${name}-head-${head}` : name} values={values} rows={tokens} columns={tokens} focus={focus} onFocus={setFocus} onLeave={leave}
      source={sourceOf(focus, trace, head, name)} {...options} />
  );
  return (
    <>
      <Switches {...props} />
      <div class="steps">
        <section>
          <h2><b>0</b> What goes in</h2>
          {trace.x && <p class="lead">Each token is a row of numbers, X. Three matrices that a model has learned make its query, key and value.</p>}
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
          <p class="lead">Times {number(trace.scale, 4)}{specification.scale === undefined && ` = 1/√${width}, ${width} being the columns of a query`}{specification.causal && "; what lies ahead of a token becomes −∞"}.</p>
          <div class="side">
            {table("scaled", "scaled", one.scaled, { tint: "sign" })}
            {one.softcapped && table("softcapped", "softcapped", one.softcapped, { tint: "sign" })}
            {one.biased && table("biased", "with ALiBi", one.biased, { tint: "sign" })}
            {table("masked", "masked", one.masked, { tint: "sign" })}
          </div>
        </section>
        <section>
          <h2><b>4</b> Weights</h2>
          <p class="lead">Softmax of each row: e to the power of each score, divided by the row's sum. None is negative, and a row that sees anything adds up to 1.</p>
          {table("weights", `weights${of}`, one.weights, { tint: "weight", wrong: trace.mistakenWeights?.[head] })}
        </section>
        <section>
          <h2><b>5</b> Outputs</h2>
          <p class="lead">Each row's weights times the values: a mixture.</p>
          {table("out", several ? `out, heads side by side` : "out", trace.out,
            { columns: undefined, tint: "sign", wrong: trace.mistakenOut })}
        </section>
      </div>
      <Why focus={focus} trace={trace} head={head} />
    </>
  );
}

function Why({ focus, trace, head }: { focus?: Place; trace: Trace; head: number }) {
  const owner = focus?.matrix === "out" ? headOf(trace, focus.column) : head;
  let text = "Point at a number, tap it, or reach it with Tab and the arrow keys: what made it lights up, and the sum stands here.";
  try {
    if (focus) text = explanation(focus, trace, owner);
  } catch {
    // The tables have changed under the pointer; the next move is about the new ones.
  }
  return <aside class="why" role="status" aria-live="polite">{text}</aside>;
}
