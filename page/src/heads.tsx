// What the heads of a real model look at: all of them small, one large, arcs from a token, and which heads stand out.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Arcs } from "./arcs";
import { shadeOf } from "./cells";
import type { Engine } from "./engine";
import example from "./example-map.json";
import { Grid } from "./grid";
import { HeadTable } from "./head-table";
import { number } from "./format";
import { HeldMap, ServedMap, headName, layerName, plain, type GivenMap, type MapInfo, type MapSource, type PairHead, type RankedHead } from "./map-source";
import type { HeadsSettings } from "./state";

interface Props {
  engine: Engine;
  /** The model of the server that this page comes from, if it has one. */
  model: string | undefined;
  /** The map that came with the page. */
  given: GivenMap | undefined;
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

export function Heads(props: Props) {
  return props.model && !props.given ? <Served {...props} /> : <Held {...props} />;
}

/** Settings that a map has a place for: a text of one's own may have fewer tokens, another model fewer heads. */
function fitted(settings: HeadsSettings, { tokens, layers, heads }: MapInfo): HeadsSettings {
  const { from, to, layer, head } = settings;
  return {
    ...settings, from: from < 0 || from >= tokens.length ? tokens.length - 1 : from, to: to < tokens.length ? to : -1,
    layer: layer < layers ? layer : 0, head: head < heads ? head : 0,
  };
}

/** The map in the page: the one that it was written with, or the example that comes along. */
function Held({ engine, given, settings, onChange }: Props) {
  const [problem, setProblem] = useState("");
  const map = given ?? (example as GivenMap);
  const source = useMemo(() => new HeldMap(map, engine), [map]);
  const { layers, heads } = source.info, fits = settings.layer < layers && settings.head < heads;
  return (
    <>
      {!given && <p class="note">An example that comes with the page. For your own text: <code>attn explore --model smollm2</code>, or <code>attn map --model smollm2 -o map.html "…"</code>.</p>}
      {problem && <p class="problem" role="alert">{problem}</p>}
      <MapView source={source} settings={fits ? settings : { ...settings, from: map.from, to: -1, layer: map.layer, head: map.head }} onChange={onChange} onError={setProblem} />
    </>
  );
}

function Served({ settings, onChange }: Props) {
  const [problem, setProblem] = useState("");
  const [made, setMade] = useState<{ text: string; source: MapSource }>();
  const [again, setAgain] = useState({ text: "", times: 0 });
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const left = new AbortController(), ifHere = (act: () => void) => { if (!left.signal.aborted) act(); };
    setBusy(true);
    setProblem("");
    ServedMap.make(settings.text, left.signal, again.text === settings.text)
      .then((source) => ifHere(() => setMade({ text: settings.text, source })), (error: Error) => ifHere(() => setProblem(error.message)))
      .finally(() => ifHere(() => setBusy(false)));
    field.current!.value = settings.text;
    return () => left.abort();
  }, [settings.text, again]);
  const submit = (event: Event) => {
    event.preventDefault();
    const text = field.current!.value;
    if (text === settings.text) setAgain({ text, times: again.times + 1 });
    else onChange({ ...settings, text, from: -1, to: -1 });
  };
  return (
    <>
      <form class="switches" onSubmit={submit}>
        <label class="wide">text <input ref={field} defaultValue={settings.text} maxLength={20000} /></label>
        <button>{busy ? "reading …" : "map"}</button>
      </form>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {made?.text === settings.text && <MapView source={made.source} settings={settings} onChange={onChange} onError={setProblem} />}
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
  const { info } = source, { from, to, layer, head } = fitted(settings, info);
  const [picking, setPicking] = useState<Picking>("from");
  const pick = (changed: Partial<HeadsSettings>) => onChange({ ...settings, ...changed });
  const thumbnails = useAnswer(() => source.thumbnails(32), [source], onError);
  const table = useAnswer(() => source.head(layer, head), [source, layer, head], onError);
  const ranking = useAnswer(() => source.ranking(from), [source, from], onError);
  const pairs = useAnswer(to < 0 ? undefined : () => source.pair(from, to), [source, from, to], onError);
  const size = info.tokens.length, row = table?.subarray(from * size, (from + 1) * size);
  return (
    <>
      <p class="note" role="note">{info.caveat} Largest difference of a weight from float64: {number(info.fidelity)}. {info.note}</p>
      <p class="lead">{info.model}, {size} tokens (words may be split), in stronger colour where the head in view looks more.</p>
      <Choice tokens={info.tokens} from={from} to={to} picking={picking} onPicking={setPicking} onClear={() => pick({ to: -1 })} />
      <Tokens tokens={info.tokens} row={row} from={from} to={to} picking={picking}
        onPick={(at, which) => pick(which === "from" ? { from: at } : { to: at === to ? -1 : at })} />
      {row && size <= 160 && <Arcs tokens={info.tokens} row={row} from={from} />}
      <div class="side">
        <section class="panel">
          <h3>All heads <small>one row per layer, stronger colour for larger weights</small></h3>
          {thumbnails && <Grid info={info} thumbnails={thumbnails} layer={layer} head={head} onPick={(l, h) => pick({ layer: l, head: h })} />}
        </section>
        <section class="panel">
          <h3>Layer {layerName(info, layer)}, head {headName(info, head)} <small>one row per query, one column per key</small></h3>
          {table && <HeadTable name={`layer-${layerName(info, layer)}-head-${headName(info, head)}`} tokens={info.tokens} weights={table} from={from} onPick={(at) => pick({ from: at })} />}
        </section>
        <section class="panel list">
          <h3>{to < 0 ? `Heads that look beyond habits from “${plain(info.tokens[from])}”` : `Heads that look from “${plain(info.tokens[from])}” to “${plain(info.tokens[to])}”`}</h3>
          {to < 0 && <p class="note">Beyond: what tokens other than the first, itself and its neighbours get above their uniform share.{from === 0 && info.causal && " The first token sees only itself: there is nothing beyond."}</p>}
          <HeadList info={info} heads={to < 0 ? ranking : pairs} layer={layer} head={head} onPick={(l, h) => pick({ layer: l, head: h })} />
        </section>
      </div>
    </>
  );
}

/** What a click on a token chooses. */
type Picking = "from" | "to";

interface ChoiceProps {
  tokens: string[];
  from: number;
  to: number;
  picking: Picking;
  onPicking: (picking: Picking) => void;
  onClear: () => void;
}

function Choice({ tokens, from, to, picking, onPicking, onClear }: ChoiceProps) {
  const choice = (which: Picking, label: string, token: string) => (
    <label><input type="radio" name="picking" checked={picking === which} onChange={() => onPicking(which)} /> {label} <b>{token}</b></label>
  );
  return (
    <div class="switches" role="group" aria-label="What a click on a token chooses">
      {choice("from", "choose where to look from:", `“${plain(tokens[from])}”`)}
      {choice("to", "and what for:", to < 0 ? "anything" : `“${plain(tokens[to])}”`)}
      {to >= 0 && <button class="quiet" aria-label="Look for anything" onClick={onClear}>×</button>}
    </div>
  );
}

interface TokensProps {
  tokens: string[];
  row: Float32Array | undefined;
  from: number;
  to: number;
  picking: Picking;
  onPick: (at: number, which: Picking) => void;
}

function Tokens({ tokens, row, from, to, picking, onPick }: TokensProps) {
  const mark = (at: number) => (at === from ? " from" : "") + (at === to ? " to" : "");
  return (
    <div class="text" role="group" aria-label="Tokens of the text">
      {tokens.map((token, at) => (
        <button class={`${row ? shadeOf(Math.sqrt(row[at]), "weight", 1) : ""}${mark(at)}`} aria-pressed={at === from || at === to}
          title={row ? `weight ${number(row[at])}` : ""} onClick={(event) => onPick(at, event.shiftKey ? "to" : picking)}>
          {plain(token)}
        </button>
      ))}
    </div>
  );
}

interface ListProps {
  info: MapInfo;
  heads: (RankedHead | PairHead)[] | undefined;
  layer: number;
  head: number;
  onPick: (layer: number, head: number) => void;
}

function HeadList({ info, heads, layer, head, onPick }: ListProps) {
  const [onlyLayer, setLayer] = useState(-1);
  const [onlyHead, setHead] = useState(-1);
  if (!heads) return <p class="note">asking …</p>;
  const listed = heads.filter((one) => (onlyLayer < 0 || one.layer === onlyLayer) && (onlyHead < 0 || one.head === onlyHead));
  const choice = (label: string, count: number, name: typeof layerName, value: number, onChoose: (value: number) => void) => (
    <label>{label}{" "}
      <select value={String(value)} onChange={(event) => onChoose(Number(event.currentTarget.value))}>
        <option value="-1">all</option>
        {Array.from({ length: count }, (_, n) => <option value={String(n)}>{name(info, n)}</option>)}
      </select>
    </label>
  );
  return (
    <>
    <div class="switches">
      {choice("layer", info.layers, layerName, onlyLayer, setLayer)}
      {choice("head", info.heads, headName, onlyHead, setHead)}
    </div>
    <ol class="heads">
      {listed.slice(0, MOST_LISTED).map((one) => (
        <li>
          <button class={one.layer === layer && one.head === head ? "chosen" : ""} onClick={() => onPick(one.layer, one.head)}>
            <b>{number("weight" in one ? one.weight : one.beyond)}</b> layer {layerName(info, one.layer)}, head {headName(info, one.head)}
          </button>
        </li>
      ))}
    </ol>
    </>
  );
}
