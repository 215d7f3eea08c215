// Bars, as SVG: each with its name and its number.
import { useRef } from "preact/hooks";
import { savePng, saveSvg } from "./save";

export interface Bar {
  name: string;
  value: number;
  text: string;
  /** From 0 to 1, of the width; from −1 where bars may point to the left. */
  length: number;
  minus?: boolean;
}

const WIDTH = 480, ROW = 26, LABEL = 140, NUMBER = 110;

export function Bars({ name, title, bars }: { name: string; title: string; bars: Bar[] }) {
  const drawing = useRef<SVGSVGElement>(null);
  const room = WIDTH - LABEL - NUMBER;
  const signed = bars.some((bar) => bar.length < 0);
  const zero = LABEL + (signed ? room / 2 : 0), unit = signed ? room / 2 : room;
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <button class="quiet save" onClick={() => saveSvg(name, drawing.current!)}>SVG</button>
        <button class="quiet save" onClick={() => savePng(name, drawing.current!)}>PNG</button>
      </figcaption>
      <svg ref={drawing} viewBox={`0 0 ${WIDTH} ${bars.length * ROW + 4}`} role="img" aria-label={`${title}: ${bars.map((bar) => `${bar.name} ${bar.text}`).join(", ")}`}>
        <line class="axis" x1={zero} x2={zero} y1={0} y2={bars.length * ROW + 4} />
        {bars.map((bar, n) => {
          const length = Math.max(Math.abs(bar.length) * unit, bar.value === 0 ? 0 : 1);
          return (
            <g>
              <text x={LABEL - 8} y={n * ROW + 18} text-anchor="end" class="label">{bar.name}</text>
              <rect class={bar.length < 0 ? "bar minus" : "bar"} x={bar.length < 0 ? zero - length : zero} y={n * ROW + 5} width={length} height={ROW - 9} rx={2} />
              <text x={signed ? WIDTH - NUMBER + 8 : zero + length + 8} y={n * ROW + 18} class="figure">{bar.text}</text>
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
