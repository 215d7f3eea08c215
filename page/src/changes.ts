// Changes of a problem: numbers, tokens, sizes. Each gives a new problem, in which all still fits together.
import type { Matrix, Specification } from "./engine";

export const MOST_TOKENS = 64;
const MOST_NAME_BYTES = 64;

/** A token's name as long as the engine takes it. */
export function shortName(name: string): string {
  while (new TextEncoder().encode(name).length > MOST_NAME_BYTES) name = [...name].slice(0, -1).join("");
  return name;
}

const INPUTS = ["x", "q", "k", "v"] as const;
const replacedIn = (matrix: Matrix, row: number, column: number, value: number): Matrix =>
  matrix.map((line, r) => (r === row ? line.map((one, c) => (c === column ? value : one)) : line));

/** Where q, k and v come from X, a row of theirs that is changed by hand replaces what X gives. */
export function setNumber(specification: Specification, name: string, row: number, column: number, value: number,
  shown: Matrix): Specification {
  const own = specification[name as keyof Specification] as Matrix | undefined;
  if (own) return { ...specification, [name]: replacedIn(own, row, column, value) };
  const others = (specification.replaced ?? []).filter((each) => each.matrix !== name || each.row !== row);
  return { ...specification, replaced: [...others, { matrix: name, row, values: replacedIn(shown, row, column, value)[row] }] };
}

/** A matrix of that size: cut, or filled up with zeros. */
function sized(matrix: Matrix | undefined, rows: number, columns: number): Matrix | undefined {
  return matrix && Array.from({ length: rows }, (_, r) => Array.from({ length: columns }, (_, c) => matrix[r]?.[c] ?? 0));
}

/** What no longer fits after a change of sizes is left out: heads, replaced rows, a length. */
function fitted(specification: Specification): Specification {
  const { tokens, wq, wv, q, v, heads, length, replaced } = specification;
  const key = (wq ?? q)![0].length, value = (wv ?? v)![0].length;
  return {
    ...specification,
    heads: heads && key % heads === 0 && value % heads === 0 ? heads : undefined,
    length: length === undefined ? undefined : Math.min(length, tokens.length),
    replaced: replaced?.filter((each) => each.row < tokens.length && each.values.length === (each.matrix === "v" ? value : key)),
  };
}

/** A matrix in another one's place; those that belong to it get its sizes. */
export function setMatrix(specification: Specification, name: string, matrix: Matrix): Specification {
  const next: Specification = { ...specification, [name]: matrix };
  if (INPUTS.includes(name as "x")) next.tokens = matrix.map((_, row) => specification.tokens[row] ?? `token ${row + 1}`);
  const { tokens: { length: rows }, x, wq, wk, wv, q, k, v } = next;
  if (x) {
    const inner = name === "x" ? matrix[0].length : matrix.length, key = (name === "wk" ? wk : wq)![0].length;
    Object.assign(next, { x: sized(x, rows, inner), wq: sized(wq, inner, key), wk: sized(wk, inner, key), wv: sized(wv, inner, wv![0].length) });
  } else {
    const key = (name === "k" ? k : q)![0].length;
    Object.assign(next, { q: sized(q, rows, key), k: sized(k, rows, key), v: sized(v, rows, v![0].length) });
  }
  return fitted(next);
}

export function addToken(specification: Specification): Specification {
  const next: Specification = { ...specification, tokens: [...specification.tokens, newName(specification.tokens)] };
  for (const name of INPUTS) {
    const matrix = specification[name];
    if (matrix) next[name] = [...matrix, matrix[0].map((_, c) => (c === 0 ? 1 : 0))];
  }
  return next;
}

function newName(tokens: string[]): string {
  let number = tokens.length + 1;
  while (tokens.includes(`token ${number}`)) ++number;
  return `token ${number}`;
}

/** Rows behind the removed one move up, and so do the changes by hand that are of them. */
export function removeToken(specification: Specification, row: number): Specification {
  const keep = <T>(list: T[]) => list.filter((_, r) => r !== row);
  const next: Specification = { ...specification, tokens: keep(specification.tokens) };
  for (const name of INPUTS) {
    const matrix = specification[name];
    if (matrix) next[name] = keep(matrix);
  }
  next.replaced = specification.replaced?.filter((each) => each.row !== row)
    .map((each) => ({ ...each, row: each.row > row ? each.row - 1 : each.row }));
  return fitted(next);
}

/** A column of X, and with it a row of each matrix; or a column of W_Q and W_K together, or of W_V. */
export function resize(specification: Specification, what: "x" | "key" | "value", by: 1 | -1): Specification {
  const columns = (matrix: Matrix | undefined) => matrix && sized(matrix, matrix.length, matrix[0].length + by);
  const rows = (matrix: Matrix | undefined) => matrix && sized(matrix, matrix.length + by, matrix[0].length);
  const { x, wq, wk, wv, q, k, v } = specification;
  const next: Specification = { ...specification };
  if (what === "x") Object.assign(next, { x: columns(x), wq: rows(wq), wk: rows(wk), wv: rows(wv) });
  else if (what === "key") Object.assign(next, x ? { wq: columns(wq), wk: columns(wk) } : { q: columns(q), k: columns(k) });
  else Object.assign(next, x ? { wv: columns(wv) } : { v: columns(v) });
  return fitted(next);
}

/** q, k and v as numbers of their own, without X and its matrices. */
export function detached(specification: Specification, q: Matrix, k: Matrix, v: Matrix): Specification {
  const { x: _x, wq: _wq, wk: _wk, wv: _wv, replaced: _replaced, ...rest } = specification;
  return { ...rest, q, k, v };
}

/** Rows of numbers as they are copied from a spreadsheet, a Python list or plain text; nothing where a row differs in length. */
export function parseMatrix(text: string): Matrix | undefined {
  const lines = text.replace(/\]\s*,?\s*\[/g, "\n").replace(/[[\]()]/g, " ").split(/[\n;]/).map((line) => line.trim());
  const rows = lines.filter(Boolean).map((line) => line.split(/[\s,\t]+/).filter(Boolean).map((one) => Number(one.replace("−", "-"))));
  const width = rows[0]?.length ?? 0;
  const fits = width > 0 && rows.every((row) => row.length === width && row.every((one) => Number.isFinite(one)));
  return fits ? rows : undefined;
}
