// What the page shows, its history, and how an address holds it.
import type { Specification } from "./engine";

export type View = "hand" | "tiles" | "cache" | "scale" | "cost" | "heads";
export const VIEWS: [View, string][] = [
  ["hand", "By hand"],
  ["tiles", "Tiles"],
  ["cache", "KV cache"],
  ["scale", "Why √d"],
  ["cost", "What it costs"],
  ["heads", "Real heads"],
];

export interface ScaleSettings {
  dim: number;
  seed: number;
  scores: number[];
}

export interface CostSettings {
  tokens: number;
  heads: number;
  kvHeads: number;
  headDim: number;
  layers: number;
  causal: boolean;
}

export interface HeadsSettings {
  text: string;
  /** A token; −1: the last. */
  from: number;
  /** A token; −1: none. */
  to: number;
  layer: number;
  head: number;
}

export interface State {
  view: View;
  specification: Specification;
  head: number;
  tile: number;
  query: number;
  step: number;
  scale: ScaleSettings;
  cost: CostSettings;
  heads: HeadsSettings;
}

export const EXAMPLE: Specification = {
  tokens: ["order", "4471", "shipped"],
  x: [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]],
  wq: [[1, 0], [0, 1], [1, 1], [0, 0]],
  wk: [[1, 0], [0, 0], [1, 1], [0, 1]],
  wv: [[1, 0], [0, 1], [2, 0], [0, 3]],
  causal: true,
};

let given: Partial<State> = {};

/** What came with the page takes the example's place. */
export function beginWith(state: Partial<State>): void {
  given = state;
}

export function initial(): State {
  return {
    view: "hand",
    specification: EXAMPLE,
    head: 0,
    tile: 1,
    query: 2,
    step: 0,
    scale: { dim: 128, seed: 1, scores: [11, 0, -11] },
    cost: { tokens: 1000, heads: 32, kvHeads: 8, headDim: 128, layers: 32, causal: true },
    heads: { text: "I ordered a kettle and a toaster last week. The kettle arrived but it was broken.", from: 15, to: -1, layer: 25, head: 2 },
    ...given,
  };
}

/** The address of a state. */
export const toHash = (state: State): string => `#${state.view}${restOf(state)}`;

/** What an address says beside the view: only what differs from the beginning, so that short links stay short. */
export function restOf(state: State): string {
  const start = initial() as unknown as Record<string, unknown>;
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(state)) {
    if (key !== "view" && JSON.stringify(value) !== JSON.stringify(start[key])) kept[key] = value;
  }
  return Object.keys(kept).length ? `:${encodeURIComponent(JSON.stringify(kept))}` : "";
}

/** What an address says; what it does not say, or says wrongly, is as at the beginning. */
export function fromHash(hash: string): State {
  const state = initial();
  const match = /^#([a-z]+)(?::(.*))?$/s.exec(hash);
  if (!match) return state;
  if (VIEWS.some(([view]) => view === match[1])) state.view = match[1] as View;
  try {
    const said = JSON.parse(decodeURIComponent(match[2] ?? "null"));
    if (said && typeof said === "object") {
      if (said.specification && Array.isArray(said.specification.tokens)) state.specification = withoutNothing(said.specification);
      for (const key of ["head", "tile", "query", "step"] as const) {
        if (Number.isInteger(said[key]) && said[key] >= (key === "tile" ? 1 : 0)) state[key] = said[key];
      }
      if (isScale(said.scale)) state.scale = said.scale;
      if (isCost(said.cost)) state.cost = said.cost;
      if (isHeads(said.heads)) state.heads = said.heads;
    }
  } catch {
    // An address that was cut short shows the beginning.
  }
  return state;
}

/** What is null or false is as if it were not there. */
function withoutNothing(specification: Specification): Specification {
  return Object.fromEntries(Object.entries(specification).filter(([, value]) => value !== null && value !== false)) as unknown as Specification;
}

function isScale(value: ScaleSettings | undefined): value is ScaleSettings {
  return Boolean(value) && Number.isInteger(value!.dim) && value!.dim >= 1 && value!.dim <= 512 && Number.isInteger(value!.seed) &&
    Array.isArray(value!.scores) && value!.scores.length > 0 && value!.scores.every((score) => Number.isFinite(score));
}

function isCost(value: CostSettings | undefined): value is CostSettings {
  return Boolean(value) &&
    Number.isInteger(value!.tokens) && value!.tokens >= 1 && value!.tokens <= 1e6 &&
    [value!.heads, value!.kvHeads, value!.headDim, value!.layers].every((size) => Number.isInteger(size) && size >= 1 && size <= 1024);
}

function isHeads(value: HeadsSettings | undefined): value is HeadsSettings {
  return Boolean(value) && typeof value!.text === "string" && [value!.from, value!.to].every((one) => Number.isInteger(one) && one >= -1) &&
    [value!.layer, value!.head].every((one) => Number.isInteger(one) && one >= 0);
}

/** States that were, and those that were undone. */
export class History {
  private past: State[] = [];
  private future: State[] = [];

  constructor(public now: State) {}

  /** Undo goes back over what was changed, to the view where it was; not over where one looked by hand. */
  go(next: State): void {
    const changed = next.specification !== this.now.specification &&
      JSON.stringify(next.specification) !== JSON.stringify(this.now.specification);
    if (changed || next.scale !== this.now.scale || next.cost !== this.now.cost || next.heads !== this.now.heads) {
      this.past.push(this.now);
      this.future = [];
    }
    this.now = next;
  }
  get canUndo(): boolean {
    return this.past.length > 0;
  }
  get canRedo(): boolean {
    return this.future.length > 0;
  }
  undo(): void {
    const before = this.past.pop();
    if (!before) return;
    this.future.push(this.now);
    this.now = before;
  }
  redo(): void {
    const after = this.future.pop();
    if (!after) return;
    this.past.push(this.now);
    this.now = after;
  }
}
