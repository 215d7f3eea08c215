// Where the numbers of a real model's map come from: the server that this page was loaded from, or the page itself.
import type { Engine } from "./engine";

export interface MapInfo {
  id: string;
  model: string;
  tokens: string[];
  special: boolean[];
  causal: boolean;
  layers: number;
  heads: number;
  /** What the model calls those that are here; without it 0, 1, … */
  layerNumbers?: number[];
  headNumbers?: number[];
  fidelity: number;
  caveat: string;
  /** What else is to be said of the numbers. */
  note?: string;
}

/** A map as attn map -o FILE.html puts it into the page. */
export interface GivenMap {
  model: string;
  tokens: string[];
  special: boolean[];
  causal: boolean;
  layers: number[];
  heads: number[];
  from: number;
  /** What is shown first, counted among those that are here. */
  layer: number;
  head: number;
  fidelity: number;
  caveat: string;
  weights: string;
}

export interface MapSource {
  readonly info: MapInfo;
  /** Square roots of the largest weights of each block, 0 to 255: [layers][heads][side][side]. */
  thumbnails(size: number): Promise<{ side: number; values: Uint8Array }>;
  /** One head's table: [tokens][tokens]. */
  head(layer: number, head: number): Promise<Float32Array>;
  /** Heads by how far they look beyond habits from a token. */
  ranking(from: number): Promise<RankedHead[]>;
  /** Heads by the weight that a token gives to another. */
  pair(from: number, to: number): Promise<PairHead[]>;
}

export interface RankedHead {
  layer: number;
  head: number;
  beyond: number;
  first: number;
  previous: number;
  itself: number;
}

export interface PairHead {
  layer: number;
  head: number;
  weight: number;
}

/** A sentence of the server's, or that it can't be reached. */
async function answered(request: Promise<Response>): Promise<Response> {
  let response: Response;
  try {
    response = await request;
  } catch {
    throw new Error("the server does not answer; is attn explore still running?");
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Error(body.error ?? `the server answers ${response.status}`);
}

/** Asked from attn explore, piece by piece. */
export class ServedMap implements MapSource {
  private readonly tables = new Map<string, Promise<Float32Array>>();

  private constructor(readonly info: MapInfo) {}

  /** The last two texts' maps: going back to one asks for nothing. The server keeps as many, large ones fewer, and says so. */
  private static readonly made = new Map<string, ServedMap>();

  static async make(text: string, signal: AbortSignal, again: boolean): Promise<ServedMap> {
    const known = ServedMap.made.get(text);
    if (known && !again) return known;
    const headers = { "Content-Type": "application/json" };
    const response = await answered(fetch("api/map", { method: "POST", headers, body: JSON.stringify({ text }), signal }));
    const map = new ServedMap(await response.json());
    ServedMap.made.delete(text);
    ServedMap.made.set(text, map);
    if (ServedMap.made.size > 2) ServedMap.made.delete(ServedMap.made.keys().next().value!);
    return map;
  }

  private async get(path: string, query: Record<string, number>): Promise<Response> {
    const numbers = Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
    return answered(fetch(`api/${path}?${new URLSearchParams({ id: this.info.id, ...numbers })}`));
  }

  async thumbnails(size: number): Promise<{ side: number; values: Uint8Array }> {
    const values = new Uint8Array(await (await this.get("thumbnails", { size })).arrayBuffer());
    return { side: Math.round(Math.sqrt(values.length / this.info.layers / this.info.heads)), values };
  }

  head(layer: number, head: number): Promise<Float32Array> {
    return kept(this.tables, `${layer}.${head}`, async () => new Float32Array(await (await this.get("weights", { layer, head })).arrayBuffer()));
  }

  async ranking(from: number): Promise<RankedHead[]> {
    return (await this.get("ranking", { from })).json();
  }

  async pair(from: number, to: number): Promise<PairHead[]> {
    return (await this.get("pair", { from, to })).json();
  }
}

/** Held by the engine, from bytes that came with the page. */
export class HeldMap implements MapSource {
  readonly info: MapInfo;

  constructor(given: GivenMap, private readonly engine: Engine) {
    const bytes = Uint8Array.from(atob(given.weights), (character) => character.charCodeAt(0));
    if (!engine.takeMap(given, bytes)) throw new Error("the map in this page is damaged: its weights are too few or too many");
    this.info = {
      id: "", model: given.model, tokens: given.tokens, special: given.special, causal: given.causal, layers: given.layers.length,
      heads: given.heads.length, layerNumbers: given.layers, headNumbers: given.heads, fidelity: given.fidelity, caveat: given.caveat,
      note: "In this page a weight w is rounded by at most √w/255.",
    };
  }

  private table(layer: number, head: number): Float32Array {
    const size = this.info.tokens.length ** 2, begin = (layer * this.info.heads + head) * size;
    return this.engine.mapWeights(begin, size);
  }

  async head(layer: number, head: number): Promise<Float32Array> {
    return this.table(layer, head).slice();
  }

  async thumbnails(size: number): Promise<{ side: number; values: Uint8Array }> {
    const { layers, heads, tokens } = this.info, count = tokens.length, side = Math.min(size, count);
    const values = new Uint8Array(layers * heads * side * side);
    for (let at = 0; at < layers * heads; ++at) {
      const table = this.table(Math.floor(at / heads), at % heads);
      for (let i = 0; i < count; ++i) {
        for (let j = 0; j < count; ++j) {
          const cell = (at * side + Math.floor((i * side) / count)) * side + Math.floor((j * side) / count);
          values[cell] = Math.max(values[cell], 255 * Math.sqrt(table[i * count + j]));
        }
      }
    }
    return { side, values };
  }

  async ranking(from: number): Promise<RankedHead[]> {
    return this.engine.mapRanking(from);
  }

  async pair(from: number, to: number): Promise<PairHead[]> {
    const { layers, heads, tokens } = this.info, list: PairHead[] = [];
    for (let layer = 0; layer < layers; ++layer) {
      for (let head = 0; head < heads; ++head) list.push({ layer, head, weight: this.table(layer, head)[from * tokens.length + to] });
    }
    return list.sort((a, b) => b.weight - a.weight);
  }
}

/** The last few answers, so that going back asks for nothing. */
function kept<K, V>(memory: Map<K, Promise<V>>, key: K, make: () => Promise<V>): Promise<V> {
  const known = memory.get(key) ?? make();
  memory.delete(key);
  memory.set(key, known);
  known.catch(() => memory.delete(key));
  if (memory.size > 24) memory.delete(memory.keys().next().value!);
  return known;
}

export const layerName = ({ layerNumbers }: MapInfo, layer: number) => String(layerNumbers?.[layer] ?? layer);
export const headName = ({ headNumbers }: MapInfo, head: number) => String(headNumbers?.[head] ?? head);

/** "▁kettle" as "kettle"; what is blank is named. */
export function plain(token: string): string {
  const text = token.replace(/▁|Ġ/g, " ").trim();
  return text === "" ? "␣" : text;
}
