// Why scores are divided by √d.
import { useEffect, useState } from "preact/hooks";
import { Bars, type Bar } from "./chart";
import type { Engine, SoftmaxAtWork } from "./engine";
import { number, parseNumber } from "./format";
import type { ScaleSettings } from "./state";

const KEYS = 8;

function weights(work: SoftmaxAtWork): Bar[] {
  return work.weights.map((weight, n) => ({ name: `score ${number(work.scores[n], 2)}`, value: weight, text: number(weight), length: weight }));
}

function Gradient({ work }: { work: SoftmaxAtWork }) {
  return <p class="figure-line">size of softmax's gradient <b title={String(work.gradient)}>{number(work.gradient)}</b></p>;
}

interface Props {
  engine: Engine;
  settings: ScaleSettings;
  onChange: (settings: ScaleSettings) => void;
}

export function Scale({ engine, settings, onChange }: Props) {
  const scaling = engine.scaling(settings.dim, KEYS, settings.seed);
  const root = Math.sqrt(settings.dim);
  return (
    <>
      <p class="lead">The product of two random vectors of d numbers spreads by about √d. Softmax of numbers so far apart puts all weight on one of them, and its gradient, by how much weights move when scores do, vanishes: nothing more is learnt. Divided by √d, the spread is 1 at every d.</p>
      <div class="switches">
        <label class="wide">d = <output>{settings.dim}</output>
          <input type="range" min={1} max={512} value={settings.dim} aria-label="d, the head dimension"
            onInput={(event) => onChange({ ...settings, dim: Number(event.currentTarget.value) })} />
        </label>
        <button onClick={() => onChange({ ...settings, seed: settings.seed + 1 })}>other random vectors</button>
      </div>
      <div class="side halves">
        <section>
          <h3>q·k as it is</h3>
          <p class="figure-line">spread (standard deviation) of 2,000 products <b>{number(scaling.spread)}</b> (√d = {number(root)})</p>
          <Bars name="softmax" title={`softmax over ${KEYS} keys`} bars={weights(scaling.plain)} />
          <Gradient work={scaling.plain} />
        </section>
        <section>
          <h3>q·k / √d</h3>
          <p class="figure-line">spread of 2,000 products <b>{number(scaling.scaled_spread)}</b></p>
          <Bars name="softmax-scaled" title={`softmax over ${KEYS} keys`} bars={weights(scaling.scaled)} />
          <Gradient work={scaling.scaled} />
        </section>
      </div>
      <Own engine={engine} settings={settings} onChange={onChange} />
    </>
  );
}

/** Scores of one's own; to begin with, those of d = 128 without scaling, and with it. */
function Own({ engine, settings, onChange }: Props) {
  const [typed, setTyped] = useState<string>();
  useEffect(() => setTyped(undefined), [settings.scores]);
  const work = engine.softmax(settings.scores);
  const preset = (scores: number[]) => {
    setTyped(undefined);  // also where these scores are there already
    onChange({ ...settings, scores });
  };
  return (
    <section>
      <h3>Scores of your own</h3>
      <div class="switches">
        <label class="wide">scores <input value={typed ?? settings.scores.map((score) => String(score)).join("  ")} class={typed === undefined ? "" : "bad"}
          title="Up to 32 numbers, with blanks between" onChange={(event) => {
            const scores = event.currentTarget.value.trim().split(/[\s;]+|,\s+/).map(parseNumber);
            const fine = scores.length > 0 && scores.length <= 32 && scores.every((score) => score !== undefined);
            setTyped(fine ? undefined : event.currentTarget.value);
            if (fine) onChange({ ...settings, scores: scores as number[] });
          }} /></label>
        {typed !== undefined && <span class="note" role="alert">up to 32 numbers, with blanks between</span>}
        <button onClick={() => preset([11, 0, -11])}>11, 0, −11</button>
        <button onClick={() => preset([1, 0, -1])}>1, 0, −1</button>
      </div>
      <Bars name="softmax-own" title="softmax" bars={weights(work)} />
      <Gradient work={work} />
    </section>
  );
}
