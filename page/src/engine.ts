// The project's own C++ in WebAssembly: every number on the page comes from here.
import createEngine from "attn-engine";
import wasmBinary from "attn-engine-wasm";
import type { GivenMap, RankedHead } from "./map-source";

export type Matrix = number[][];
/** JSON has no infinities: "-inf", "inf" and "nan" stand for them. */
export type Value = number | "-inf" | "inf" | "nan";
export type Values = Value[][];

/** A row of q, k or v that is not as X gives it. */
export interface Replacement {
  matrix: string;
  row: number;
  values: number[];
}

/** A small problem, as explain/page_problem.h has it. */
export interface Specification {
  tokens: string[];
  x?: Matrix;
  wq?: Matrix;
  wk?: Matrix;
  wv?: Matrix;
  q?: Matrix;
  k?: Matrix;
  v?: Matrix;
  replaced?: Replacement[];
  causal?: boolean;
  offset?: number;
  scale?: number;
  softcap?: number;
  window?: [number | null, number | null];
  sink_tokens?: number;
  alibi?: boolean;
  length?: number;
  heads?: number;
  tiles?: number;
  cache?: boolean;
  mistake?: string;
}

export interface Tile {
  keys: number[];
  max: Value;
  sum: Value;
  rescale: Value;
  exps: Value[];
  out: Value[];
}

export interface CacheStep {
  token: number;
  appended: { k: Value[]; v: Value[] };
  keys: number[];
  scores: Value[];
  weights: Value[];
  out: Value[];
}

export interface Head {
  scores: Values;
  scaled: Values;
  softcapped?: Values;
  biased?: Values;
  masked: Values;
  weights: Values;
  tiles?: Tile[][];
  steps?: CacheStep[];
}

export interface Trace {
  tokens: string[];
  x?: Values;
  wq?: Values;
  wk?: Values;
  wv?: Values;
  q: Values;
  k: Values;
  v: Values;
  scale: number;
  out: Values;
  heads: Head[];
  mistake?: { id: string; name: string; what: string; fix: string; note: string; shows: boolean };
  replaced: Replacement[];
  mistakenOut?: Values;
  mistakenWeights?: Values[];
}

export interface Mistake {
  id: string;
  name: string;
  what: string;
  fix: string;
}

export interface SoftmaxAtWork {
  scores: number[];
  weights: number[];
  gradient: number;
}

export interface Scaling {
  spread: number;
  scaled_spread: number;
  plain: SoftmaxAtWork;
  scaled: SoftmaxAtWork;
}

export interface Cost {
  scores: number;
  flops: number;
  table_bytes: number;
  tile_bytes: number;
  kv_cache_bytes: number;
}

interface Module {
  ccall(name: string, result: string, types: string[], values: unknown[]): unknown;
  HEAPU8: Uint8Array;
  HEAPF32: Float32Array;
}

/** One head's list where there is one head: the JSON of `attn explain` puts lists of heads only where there are several. */
function perHead<T>(value: T | T[] | undefined, heads: number): (T | undefined)[] {
  return heads === 1 ? [value as T | undefined] : ((value as T[] | undefined) ?? Array(heads).fill(undefined));
}

export class Engine {
  private constructor(private readonly module: Module) {}

  static async load(): Promise<Engine> {
    return new Engine(await createEngine({ wasmBinary }));
  }

  private json(name: string, types: string[] = [], values: unknown[] = []) {
    return JSON.parse(this.module.ccall(name, "string", types, values) as string);
  }

  /** The trace, or the library's sentence about what is wrong. */
  work(specification: Specification): Trace | { error: string } {
    const json = this.json("attn_page_work", ["string"], [JSON.stringify(specification)]);
    if (json.error) return json;
    const count: number = json.heads;
    const of = <K extends keyof Head>(key: K) => perHead(json[key], count) as Head[K][];
    const [scores, scaled, softcapped, biased, masked, weights, tiles, steps] = [
      of("scores"), of("scaled"), of("softcapped"), of("biased"), of("masked"), of("weights"), of("tiles"), of("steps"),
    ];
    const heads = scores.map((_, h) => ({
      scores: scores[h], scaled: scaled[h], softcapped: softcapped[h], biased: biased[h], masked: masked[h], weights: weights[h], tiles: tiles[h],
      steps: steps[h],
    }));
    const wrong = json.mistaken_weights;
    const mistakenWeights = wrong && wrong.length ? (count === 1 ? [wrong] : wrong) : undefined;
    return { ...json, heads, replaced: specification.replaced ?? [], mistakenOut: json.mistaken_out, mistakenWeights };
  }

  mistakes(): Mistake[] {
    return this.json("attn_page_mistakes");
  }

  /** The ids of those that change a number here. */
  shownMistakes(specification: Specification): string[] {
    return this.json("attn_page_shown_mistakes", ["string"], [JSON.stringify(specification)]);
  }

  scaling(dim: number, keys: number, seed: number): Scaling {
    return this.json("attn_page_scaling", ["number", "number", "number"], [dim, keys, seed]);
  }

  softmax(scores: number[]): SoftmaxAtWork {
    return this.json("attn_page_softmax", ["string"], [JSON.stringify(scores)]);
  }

  cost(tokens: number, heads: number, kvHeads: number, headDim: number, layers: number, causal: boolean): Cost {
    return this.json("attn_page_cost", Array(6).fill("number"), [tokens, heads, kvHeads, headDim, layers, causal ? 1 : 0]);
  }

  /** Takes a map's bytes; false where there are not as many as its sizes say. */
  takeMap(about: GivenMap, bytes: Uint8Array): boolean {
    const place = this.module.ccall("attn_page_map_memory", "number", ["number"], [bytes.length]) as number;
    this.module.HEAPU8.set(bytes, place);
    const { tokens, special, causal, layers, heads } = about;
    return this.module.ccall("attn_page_map", "number", ["string"], [JSON.stringify({ tokens, special, causal, layers, heads })]) === 1;
  }

  /** A part of the map's weights, as they lie in the engine's memory. */
  mapWeights(begin: number, count: number): Float32Array {
    const place = (this.module.ccall("attn_page_map_weights", "number", [], []) as number) / 4;
    return this.module.HEAPF32.subarray(place + begin, place + begin + count);
  }

  mapRanking(from: number): RankedHead[] {
    return this.json("attn_page_map_ranking", ["number"], [from]);
  }

  /** Seconds, at best, that this browser takes to attend over so many tokens of one head, the table stored, in float64. */
  time(tokens: number, headDim: number): number {
    const attend = () => this.module.ccall("attn_page_attend", "number", ["number", "number"], [tokens, headDim]);
    let least = Infinity;
    for (const begin = performance.now(); performance.now() - begin < 100;) {
      const before = performance.now();
      let calls = 0;
      do {
        attend();
        ++calls;
      } while (performance.now() - before < 5); // browsers round their clock
      least = Math.min(least, (performance.now() - before) / calls);
    }
    return least / 1000;
  }
}
