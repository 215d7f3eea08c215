// Where the numbers of a real model's map come from: the server that this page was loaded from.

export interface MapInfo {
  id: string;
  model: string;
  tokens: string[];
  special: boolean[];
  causal: boolean;
  layers: number;
  heads: number;
  fidelity: number;
  caveat: string;
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

export class MapSource {
  private readonly rows = new Map<number, Promise<Float32Array>>();
  private readonly weights = new Map<string, Promise<Float32Array>>();

  private constructor(readonly info: MapInfo) {}

  static async make(text: string): Promise<MapSource> {
    const response = await answered(fetch("api/map", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text }) }));
    return new MapSource(await response.json());
  }

  private async get(path: string, query: Record<string, number>): Promise<Response> {
    const parameters = new URLSearchParams({ id: this.info.id, ...Object.fromEntries(Object.entries(query).map(([k, v]) => [k, String(v)])) });
    return answered(fetch(`api/${path}?${parameters}`));
  }

  /** Square roots of the largest weights of each block, 0 to 255: [layers][heads][side][side]. */
  async thumbnails(size: number): Promise<{ side: number; values: Uint8Array }> {
    const values = new Uint8Array(await (await this.get("thumbnails", { size })).arrayBuffer());
    return { side: Math.round(Math.sqrt(values.length / this.info.layers / this.info.heads)), values };
  }

  /** The row of one query in every head: [layers][heads][tokens]. */
  row(from: number): Promise<Float32Array> {
    return kept(this.rows, from, async () => new Float32Array(await (await this.get("row", { from })).arrayBuffer()));
  }

  /** One head's table: [tokens][tokens]. */
  head(layer: number, head: number): Promise<Float32Array> {
    return kept(this.weights, `${layer}.${head}`, async () => new Float32Array(await (await this.get("weights", { layer, head })).arrayBuffer()));
  }

  async ranking(from: number): Promise<RankedHead[]> {
    return (await this.get("ranking", { from })).json();
  }

  async pair(from: number, to: number): Promise<PairHead[]> {
    return (await this.get("pair", { from, to })).json();
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

/** "▁kettle" as "kettle"; what is blank is named. */
export function plain(token: string): string {
  const text = token.replace(/▁|Ġ/g, " ").trim();
  return text === "" ? "␣" : text;
}
