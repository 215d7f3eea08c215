// The page: what is shown, its history, its address, and the keys that work everywhere.
import { render } from "preact";
import { useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import "./style.css";
import { Cache } from "./cache";
import { tintRules } from "./cells";
import { CostView } from "./cost";
import { Engine, type Specification } from "./engine";
import { Hand } from "./hand";
import { Heads } from "./heads";
import type { GivenMap } from "./map-source";
import { Scale } from "./scaling";
import { History, VIEWS, beginWith, fromHash, initial, restOf, toHash, type State, type View } from "./state";
import { choose, onSystemChange, theme, type Theme } from "./theme";
import { Tiles } from "./tiles";

const INTRODUCTIONS: Record<View, string> = {
  hand: "softmax(q·kᵀ/√d + mask)·v, number by number. Change any of the inputs and see what follows.",
  tiles: "The same result as FlashAttention gets it.",
  cache: "How a model writes on without beginning anew.",
  scale: "What one root is for.",
  cost: "Numbers behind long texts.",
  heads: "What the heads of a trained model look at.",
};

/** The address follows changes at this pace: browsers take 3 ms to change it, and some refuse more than 100 changes in 30 s. */
const ADDRESS_MS = 350;

const NEXT_THEME: Record<Theme, Theme> = { dark: "light", light: "auto", auto: "dark" };

/** What a server or a file has put into the page: read once, since a map in it may be large. */
const GIVEN = readGiven();

function readGiven(): { specification?: Specification; server?: { model: string | null }; map?: GivenMap } {
  try {
    return JSON.parse(document.getElementById("given")!.textContent!) ?? {};
  } catch {
    return {};
  }
}

/** What came with the page is where it begins, and what "example" goes back to. */
function beginning(): Partial<State> {
  const { specification, map } = GIVEN;
  if (map) return { view: "heads", heads: { text: "", from: map.from, to: -1, layer: map.layer, head: map.head } };
  if (!specification) return {};
  const { tiles, cache, ...rest } = specification;
  return { specification: rest, view: tiles ? "tiles" : cache ? "cache" : "hand", tile: tiles ?? 1 };
}

beginWith(beginning());

/** What a view asks the engine for: by hand one tile that holds all keys, whose exponentials are shown. */
function specificationFor(state: State): Specification {
  const { specification, view } = state;
  if (view === "tiles") return { ...specification, tiles: state.tile, mistake: undefined };
  if (view === "cache") return { ...specification, cache: specification.causal, tiles: undefined, mistake: undefined };
  return { ...specification, tiles: specification.tokens.length, cache: undefined };
}

function Page({ engine }: { engine: Engine }) {
  const history = useMemo(() => new History(fromHash(location.hash)), []);
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const mistakes = useMemo(() => engine.mistakes(), []);
  const state = history.now;
  const rest = useMemo(() => restOf(state), [state]);

  const go = (next: State) => { history.go(next); redraw(0); };
  const change = (part: Partial<State>) => go({ ...history.now, ...part });
  const undo = () => { history.undo(); redraw(0); };
  const redo = () => { history.redo(); redraw(0); };
  const beginAgain = () => go({ ...initial(), view: state.view });

  const written = useRef(0);
  const writeAddress = () => {
    window.history.replaceState(null, "", toHash(history.now));
    written.current = performance.now();
  };
  useEffect(() => {
    const timer = setTimeout(writeAddress, Math.max(0, written.current + ADDRESS_MS - performance.now()));
    return () => clearTimeout(timer);
  }, [state]);
  useEffect(() => onSystemChange(() => redraw(0)), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      // A field's own typing is undone by the browser first.
      const typing = event.target instanceof HTMLInputElement && ["text", "number"].includes(event.target.type) && event.target.value !== event.target.defaultValue;
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
        event.preventDefault();
        event.shiftKey ? redo() : undo();
      }
      const digit = Number(event.key);
      if (event.altKey && digit >= 1 && digit <= VIEWS.length) { event.preventDefault(); change({ view: VIEWS[digit - 1][0], step: 0 }); }
    };
    const onHash = () => { if (location.hash !== toHash(history.now)) go(fromHash(location.hash)); };
    addEventListener("keydown", onKey);
    addEventListener("hashchange", onHash);
    return () => { removeEventListener("keydown", onKey); removeEventListener("hashchange", onHash); };
  }, []);

  const needsTrace = state.view === "hand" || state.view === "tiles" || state.view === "cache";
  const worked = useMemo(() => (needsTrace ? engine.work(specificationFor(state)) : undefined),
    [needsTrace && state.specification, state.view, state.view === "tiles" && state.tile]);
  const problem = worked && "error" in worked ? worked.error : "";
  const trace = worked && !("error" in worked) ? worked : undefined;
  const head = trace ? Math.min(state.head, trace.heads.length - 1) : 0;

  return (
    <>
      <header>
        <h1>attn <small>attention you can touch</small></h1>
        <nav aria-label="Views">
          {VIEWS.map(([view, title], n) => (
            <a href={`#${view}${rest}`} aria-current={view === state.view ? "page" : undefined} title={`Alt+${n + 1}`}
              onClick={(event) => { event.preventDefault(); change({ view, step: 0 }); }}>{title}</a>
          ))}
        </nav>
        <div class="tools">
          <button onClick={undo} disabled={!history.canUndo} title="Ctrl+Z" aria-label="Undo">↶</button>
          <button onClick={redo} disabled={!history.canRedo} title="Ctrl+Shift+Z" aria-label="Redo">↷</button>
          <button onClick={beginAgain} disabled={rest === ""} title="Back to what the page began with">example</button>
          <CopyLink onCopy={writeAddress} />
          <button onClick={() => { choose(NEXT_THEME[theme()]); redraw(0); }} title="Light, dark, or as the system">theme: {theme()}</button>
        </div>
      </header>
      <main>
        <p class="introduction">{INTRODUCTIONS[state.view]}</p>
        {problem && (
          <p class="problem" role="alert">
            {problem}. <button onClick={undo} disabled={!history.canUndo}>undo</button> <button onClick={beginAgain}>the example</button>
          </p>
        )}
        {trace && state.view === "hand" && (
          <Hand engine={engine} specification={state.specification} trace={trace} mistakes={mistakes} head={head}
            onHead={(next) => change({ head: next })} onChange={(specification) => change({ specification })} />
        )}
        {trace && state.view === "tiles" && (
          <Tiles trace={trace} head={head} onHead={(next) => change({ head: next })} tile={state.tile} query={state.query} step={state.step} onChange={change} />
        )}
        {trace && state.view === "cache" && <Cache trace={trace} head={head} onHead={(next) => change({ head: next })} step={state.step} onChange={change}
          onCausal={() => change({ specification: { ...state.specification, causal: true } })} />}
        {state.view === "scale" && <Scale engine={engine} settings={state.scale} onChange={(scale) => change({ scale })} />}
        {state.view === "cost" && <CostView engine={engine} settings={state.cost} onChange={(cost) => change({ cost })} />}
        {state.view === "heads" && <Heads engine={engine} model={GIVEN.server?.model ?? undefined} given={GIVEN.map} settings={state.heads} onChange={(heads) => change({ heads })} />}
      </main>
      <footer>
        Computed here by attn's own C++ in WebAssembly, in float64; full digits are in the titles and the CSV. Weights show where values come
        from, not why a model says something.
      </footer>
    </>
  );
}

/** The address holds all numbers. */
function CopyLink({ onCopy }: { onCopy: () => void }) {
  const [says, setSays] = useState("copy link");
  const copy = () => {
    onCopy();
    const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject();
    copied.then(() => setSays("copied"), () => setSays("the address is the link"));
    setTimeout(() => setSays("copy link"), 2500);
  };
  return <button onClick={copy} title="The address holds all numbers" aria-live="polite">{says}</button>;
}

document.head.append(Object.assign(document.createElement("style"), { textContent: tintRules() }));
const root = document.getElementById("page")!;
Engine.load().then(
  (engine) => {
    root.textContent = "";
    render(<Page engine={engine} />, root);
    document.documentElement.dataset.readyMs = performance.now().toFixed(0);
  },
  (error) => { root.textContent = `attn could not start here: ${error}. It needs a browser with WebAssembly.`; },
);
