// Where a number comes from: which rows and columns made it, and the sum written out.
import type { Head, Trace, Value } from "./engine";
import { factor, number } from "./format";

export interface Place {
  matrix: string;
  row: number;
  column: number;
}

const PROJECTIONS: Record<string, string> = { q: "wq", k: "wk", v: "wv" };
export const TITLES: Record<string, string> = {
  x: "X", wq: "W_Q", wk: "W_K", wv: "W_V", q: "q", k: "k", v: "v", scores: "q·k", scaled: "× scale", softcapped: "softcap", biased: "with ALiBi",
  masked: "masked", weights: "weights", out: "out",
};

/** The columns of q, k or v that belong to a head. */
function columnsOf(trace: Trace, matrix: string, head: number): [number, number] {
  const all = (matrix === "v" || matrix === "out" ? trace.v : trace.q)[0].length;
  const width = all / trace.heads.length;
  return [head * width, (head + 1) * width];
}

/** The head that a column of the outputs belongs to. */
export function headOf(trace: Trace, column: number): number {
  return Math.floor((column * trace.heads.length) / trace.v[0].length);
}

/** Whether a row of q, k or v is not as X gives it. */
export const isReplaced = (trace: Trace, matrix: string, row: number) => trace.replaced.some((each) => each.matrix === matrix && each.row === row);

/** The table that a score comes through before its mask, the last of those that are there. */
function beforeMask(head: Head): "scaled" | "softcapped" | "biased" {
  return head.biased ? "biased" : beforeBias(head);
}

const beforeBias = (head: Head) => (head.softcapped ? "softcapped" : "scaled");

/** A part of a matrix: one row or all, and the columns from `begin` to before `end`. */
export interface Area {
  row?: number;
  begin: number;
  end: number;
}

/** What of `matrix` took part in making the number at `focus`. */
export function sourceOf(focus: Place | undefined, trace: Trace, head: number, matrix: string): Area | undefined {
  if (!focus) return undefined;
  const { row, column } = focus;
  const line = (at: number): Area => ({ row: at, begin: 0, end: Infinity });
  const cell = (): Area => ({ row, begin: column, end: column + 1 });
  const inHead = (name: string, at: number): Area => {
    const [begin, end] = columnsOf(trace, name, head);
    return { row: at, begin, end };
  };
  switch (focus.matrix) {
    case "q":
    case "k":
    case "v":
      if (!trace.x || isReplaced(trace, focus.matrix, focus.row)) return undefined;
      return matrix === "x" ? line(row) : matrix === PROJECTIONS[focus.matrix] ? { begin: column, end: column + 1 } : undefined;
    case "scores":
      return matrix === "q" ? inHead("q", row) : matrix === "k" ? inHead("k", column) : undefined;
    case "scaled":
      return matrix === "scores" ? cell() : undefined;
    case "softcapped":
      return matrix === "scaled" ? cell() : undefined;
    case "biased":
      return matrix === beforeBias(trace.heads[head]) ? cell() : undefined;
    case "masked":
      return matrix === beforeMask(trace.heads[head]) ? cell() : undefined;
    case "weights":
      return matrix === "masked" ? line(row) : undefined;
    case "out":
      if (headOf(trace, column) !== head && matrix === "weights") return undefined;
      return matrix === "weights" ? line(row) : matrix === "v" ? { begin: column, end: column + 1 } : undefined;
    default:
      return undefined;
  }
}

/** "=" where all digits are shown, "≈" where somebody who calculates it again with these digits may get other ones. */
export function equals(...shown: Value[]): string {
  const isWhole = (value: Value) => typeof value !== "number" || number(value).replace("−", "-") === String(value);
  return shown.every(isWhole) ? "=" : "≈";
}

function products(left: Value[], right: Value[]): string {
  const terms = left.map((one, n) => `${factor(one)}·${factor(right[n])}`);
  return terms.length > 12 ? `${terms.slice(0, 10).join(" + ")} + … + ${terms[terms.length - 1]}` : terms.join(" + ");
}

/** "the query of shipped · the key of order = 1·2 + 1·1 = 3" */
export function explanation(focus: Place, trace: Trace, head: number): string {
  const { matrix, row, column } = focus;
  const one = trace.heads[head];
  const token = (index: number) => `“${trace.tokens[index]}”`;
  const is = (value: Value, ...shown: Value[]) => ` ${equals(value, ...shown)} ${number(value)}`;
  switch (matrix) {
    case "x":
    case "wq":
    case "wk":
    case "wv":
      return `${TITLES[matrix]}, row ${row}, column ${column}: given. Type to change it.`;
    case "q":
    case "k":
    case "v": {
      if (isReplaced(trace, focus.matrix, focus.row)) return `${matrix} of ${token(row)}, column ${column}: changed by hand, to ${number(trace[matrix][row][column])}.`;
      const projection = trace[PROJECTIONS[matrix] as "wq"];
      if (!trace.x || !projection) return `${matrix} of ${token(row)}, column ${column}: given. Type to change it.`;
      const weights = projection.map((line) => line[column]);
      return `${matrix} of ${token(row)}, column ${column}: X · ${TITLES[PROJECTIONS[matrix]]} = ${products(trace.x[row], weights)}` +
        is(trace[matrix][row][column], ...trace.x[row], ...weights);
    }
    case "scores": {
      const [begin, end] = columnsOf(trace, "q", head);
      const query = trace.q[row].slice(begin, end), key = trace.k[column].slice(begin, end);
      return `query of ${token(row)} · key of ${token(column)} = ${products(query, key)}${is(one.scores[row][column], ...query, ...key)}`;
    }
    case "scaled":
      return `${factor(one.scores[row][column])} × ${number(trace.scale, 4)}${is(one.scaled[row][column], one.scores[row][column], trace.scale)}`;
    case "softcapped":
      return `the score ${number(one.scaled[row][column])}, capped${is(one.softcapped![row][column])}`;
    case "biased": {
      const before = one[beforeBias(one)]![row][column];
      return `the score ${number(before)}, less for a key farther away (ALiBi)${is(one.biased![row][column])}`;
    }
    case "masked":
      if (one[beforeMask(one)]![row][column] === "-inf") return `${token(row)} on ${token(column)}: the score is −∞ itself, too small for float64`;
      return one.masked[row][column] === "-inf"
        ? `${token(row)} may not see ${token(column)}: its score becomes −∞, so that its weight is 0`
        : `${token(row)} sees ${token(column)}: the score stays ${number(one.masked[row][column])}`;
    case "weights":
      return weightExplanation(trace, one, row, column);
    case "out": {
      const values = trace.v.map((line) => line[column]);
      const owner = headOf(trace, column), ofHead = trace.heads.length > 1 ? ` of head ${owner}` : "";
      return `out of ${token(row)}, column ${column}: weights${ofHead} · values = ` +
        products(trace.heads[owner].weights[row], values) + is(trace.out[row][column], ...trace.heads[owner].weights[row], ...values);
    }
    default:
      return "";
  }
}

/** The exponentials and their sum are the library's own: the trace of one tile that holds every key. */
function weightExplanation(trace: Trace, head: Head, row: number, column: number): string {
  const weight = head.weights[row][column], masked = head.masked[row];
  const about = `“${trace.tokens[row]}” on “${trace.tokens[column]}”: `;
  if (masked[column] === "-inf") return `${about}e^(−∞) = 0, no weight at all`;
  const tile = head.tiles?.[row]?.length === 1 ? head.tiles[row][0] : undefined;
  const at = tile?.keys.indexOf(column) ?? -1;
  if (!tile || at < 0) return `${about}softmax of the row = ${number(weight)}`;
  const exps = tile.exps.map((exp) => number(exp));
  const sum = exps.length > 12 ? `${exps.slice(0, 10).join(" + ")} + …` : exps.join(" + ");
  return `${about}e^(${number(masked[column])} − ${factor(tile.max)}) / (${sum}) ` +
    `${equals(masked[column], tile.max, ...tile.exps)} ${number(tile.exps[at])} / ${number(tile.sum)} ` +
    `${equals(tile.exps[at], tile.sum, weight)} ${number(weight)}`;
}
