// Bars, as SVG: each with its name and its number.
import { useRef } from "preact/hooks";
import { savePng, saveSvg } from "./save";

export interface Bar {
  name: string;
  value: number;
  text: string;
  /** From 0 to 1, of the width. */
  length: number;
}

const WIDTH = 480, ROW = 26, LABEL = 140, NUMBER = 110;

export function Bars({ name, title, bars }: { name: string; title: string; bars: Bar[] }) {
  const drawing = useRef<SVGSVGElement>(null);
  const room = WIDTH - LABEL - NUMBER;
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <button class="quiet save" onClick={() => saveSvg(name, drawing.current!)}>SVG</button>
        <button class="quiet save" onClick={() => savePng(name, drawing.current!)}>PNG</button>
      </figcaption>
      <svg ref={drawing} viewBox={`0 0 ${WIDTH} ${bars.length * ROW + 4}`} role="img" aria-label={`${title}: ${bars.map((bar) => `${bar.name} ${bar.text}`).join(", ")}`}>
        <line class="axis" x1={LABEL} x2={LABEL} y1={0} y2={bars.length * ROW + 4} />
        {bars.map((bar, n) => {
          const length = Math.max(bar.length * room, bar.value === 0 ? 0 : 1);
          return (
            <g>
              <text x={LABEL - 8} y={n * ROW + 18} text-anchor="end" class="label">{bar.name}</text>
              <rect class="bar" x={LABEL} y={n * ROW + 5} width={length} height={ROW - 9} rx={2} />
              <text x={LABEL + length + 8} y={n * ROW + 18} class="figure">{bar.text}</text>
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
