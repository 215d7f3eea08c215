// What the heads of a real model look at: all of them small, one large, arcs from a token, and which heads stand out.
import { useEffect, useRef, useState } from "preact/hooks";
import { Arcs } from "./arcs";
import { Grid } from "./grid";
import { HeadTable } from "./head-table";
import { number } from "./format";
import { MapSource, plain, type PairHead, type RankedHead } from "./map-source";
import type { HeadsSettings } from "./state";

interface Props {
  model: string | undefined;
  settings: HeadsSettings;
  onChange: (settings: HeadsSettings) => void;
}

const MOST_LISTED = 12;

/** What an asynchronous question has given; nothing while it, or another one before it, is still asked. */
function useAnswer<T>(ask: (() => Promise<T>) | undefined, asked: unknown[], onError: (sentence: string) => void): T | undefined {
  const [answer, setAnswer] = useState<{ asked: unknown[]; value: T }>();
  useEffect(() => {
    let current = true;
    ask?.().then((value) => current && setAnswer({ asked, value }), (error: Error) => current && onError(error.message));
    return () => { current = false; };
  }, asked);
  return answer && answer.asked.every((one, n) => one === asked[n]) ? answer.value : undefined;
}

export function Heads({ model, settings, onChange }: Props) {
  const [problem, setProblem] = useState("");
  const [source, setSource] = useState<MapSource>();
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);

  const make = async (text: string) => {
    setBusy(true);
    setProblem("");
    try {
      const made = await MapSource.make(text);
      setSource(made);
      const last = made.info.tokens.length - 1;
      const keep = settings.text === text && settings.from <= last && settings.layer < made.info.layers && settings.head < made.info.heads;
      onChange(keep ? settings : { ...settings, text, from: last, to: -1, layer: 0, head: 0 });
    } catch (error) {
      setProblem((error as Error).message);
    }
    setBusy(false);
  };
  useEffect(() => { if (model) void make(settings.text); }, []);

  if (!model) {
    return <p class="note">Real heads need a model: start <code>attn explore --model smollm2</code> and open the page that it serves.</p>;
  }
  return (
    <>
      <form class="switches" onSubmit={(event) => { event.preventDefault(); void make(field.current!.value); }}>
        <label class="wide">text <input ref={field} defaultValue={settings.text} maxLength={20000} /></label>
        <button disabled={busy}>{busy ? "reading …" : "map"}</button>
      </form>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {source && <MapView source={source} settings={settings} onChange={onChange} onError={setProblem} />}
    </>
  );
}

interface ViewProps {
  source: MapSource;
  settings: HeadsSettings;
  onChange: (settings: HeadsSettings) => void;
  onError: (sentence: string) => void;
}

function MapView({ source, settings, onChange, onError }: ViewProps) {
  const { info } = source, { from, to, layer, head } = settings;
  const pick = (changed: Partial<HeadsSettings>) => onChange({ ...settings, ...changed });
  const thumbnails = useAnswer(() => source.thumbnails(32), [source], onError);
  const table = useAnswer(() => source.head(layer, head), [source, layer, head], onError);
  const ranking = useAnswer(() => source.ranking(from), [source, from], onError);
  const pairs = useAnswer(to < 0 ? undefined : () => source.pair(from, to), [source, from, to], onError);
  const size = info.tokens.length, row = table?.subarray(from * size, (from + 1) * size);
  return (
    <>
      <p class="note" role="note">{info.caveat} Largest difference of a weight from float64: {number(info.fidelity)}.</p>
      <p class="lead">{info.model}, {size} tokens. Choose a token to look from; with Shift, or the key T, one to look for.</p>
      <Tokens tokens={info.tokens} row={row} from={from} to={to} onPick={(at, target) => pick(target ? { to: at === to ? -1 : at } : { from: at })} />
      {row && size <= 160 && <Arcs tokens={info.tokens} row={row} from={from} />}
      <div class="side">
        <section class="panel">
          <h3>All heads <small>a row a layer, darker where larger</small></h3>
          {thumbnails && <Grid info={info} thumbnails={thumbnails} layer={layer} head={head} onPick={(l, h) => pick({ layer: l, head: h })} />}
        </section>
        <section class="panel">
          <h3>Layer {layer}, head {head}</h3>
          {table && <HeadTable tokens={info.tokens} weights={table} from={from} onPick={(at) => pick({ from: at })} />}
        </section>
        <section class="panel list">
          <h3>{to < 0 ? `Heads that look beyond habits from “${plain(info.tokens[from])}”` : `Heads that look from “${plain(info.tokens[from])}” to “${plain(info.tokens[to])}”`}</h3>
          <HeadList heads={to < 0 ? ranking : pairs} layer={layer} head={head} onPick={(l, h) => pick({ layer: l, head: h })} />
          {to >= 0 && <button class="quiet" onClick={() => pick({ to: -1 })}>no target</button>}
          {to < 0 && <p class="note">beyond: what tokens other than the first, itself and its neighbours get above their uniform share.</p>}
        </section>
      </div>
    </>
  );
}

interface TokensProps {
  tokens: string[];
  row: Float32Array | undefined;
  from: number;
  to: number;
  onPick: (at: number, target: boolean) => void;
}

function Tokens({ tokens, row, from, to, onPick }: TokensProps) {
  return (
    <div class="text" role="group" aria-label="Tokens of the text">
      {tokens.map((token, at) => (
        <button class={at === from ? "from" : at === to ? "to" : ""} aria-pressed={at === from} title={row ? `weight ${number(row[at])}` : ""}
          style={{ background: row ? `color-mix(in srgb, var(--plus) ${Math.round(Math.sqrt(row[at]) * 70)}%, transparent)` : undefined }}
          onClick={(event) => onPick(at, event.shiftKey)} onKeyDown={(event) => { if (event.key === "t") onPick(at, true); }}>
          {plain(token)}
        </button>
      ))}
    </div>
  );
}

interface ListProps {
  heads: (RankedHead | PairHead)[] | undefined;
  layer: number;
  head: number;
  onPick: (layer: number, head: number) => void;
}

function HeadList({ heads, layer, head, onPick }: ListProps) {
  if (!heads) return <p class="note">asking …</p>;
  return (
    <ol class="heads">
      {heads.slice(0, MOST_LISTED).map((one) => (
        <li>
          <button class={one.layer === layer && one.head === head ? "chosen" : ""} onClick={() => onPick(one.layer, one.head)}>
            {one.layer}.{one.head} <b>{number("weight" in one ? one.weight : one.beyond)}</b>
          </button>
        </li>
      ))}
    </ol>
  );
}
