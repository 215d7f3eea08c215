// Arcs from the token in focus to those that it looks at, thicker where the weight is larger.
import { useEffect, useRef } from "preact/hooks";
import { short } from "./format";
import { plain } from "./map-source";
import { savePng, saveSvg } from "./save";

const SPACE = 46, HEIGHT = 130, LEAST = 0.02;

export function Arcs({ tokens, row, from }: { tokens: string[]; row: Float32Array; from: number }) {
  const drawing = useRef<SVGSVGElement>(null);
  const x = (at: number) => at * SPACE + SPACE / 2;
  const seen = [...row].map((weight, at) => ({ weight, at })).filter(({ weight }) => weight >= LEAST);
  useEffect(() => {
    const frame = drawing.current!.parentElement!;
    frame.scrollLeft = x(from) - frame.clientWidth / 2;
  }, [tokens, from]);
  return (
    <figure class="arcs">
      <figcaption><span>From “{plain(tokens[from])}” in this head</span>
        <button class="quiet save" onClick={() => saveSvg("arcs", drawing.current!)}>SVG</button>
        <button class="quiet save" onClick={() => savePng("arcs", drawing.current!)}>PNG</button>
      </figcaption>
      <div class="scroll">
        <svg ref={drawing} viewBox={`0 0 ${tokens.length * SPACE} ${HEIGHT + 30}`} width={tokens.length * SPACE} height={HEIGHT + 30} role="img"
          aria-label={seen.map(({ weight, at }) => `${plain(tokens[at])} ${weight.toFixed(2)}`).join(", ")}>
          {seen.map(({ weight, at }) => {
            const reach = Math.min(HEIGHT - 12, 18 + Math.abs(x(from) - x(at)) / 4);
            const path = at === from
              ? `M ${x(at) - 7} ${HEIGHT} C ${x(at) - 16} ${HEIGHT - 34}, ${x(at) + 16} ${HEIGHT - 34}, ${x(at) + 7} ${HEIGHT}`
              : `M ${x(from)} ${HEIGHT} C ${x(from)} ${HEIGHT - reach * 1.3}, ${x(at)} ${HEIGHT - reach * 1.3}, ${x(at)} ${HEIGHT}`;
            return <path class="arc" d={path} stroke-width={1 + 7 * weight} opacity={0.25 + 0.75 * weight} fill="none" />;
          })}
          {tokens.map((token, at) => (
            <text class={at === from ? "chosen" : ""} x={x(at)} y={HEIGHT + 18} text-anchor="middle">{short(plain(token), 7)}</text>
          ))}
        </svg>
      </div>
    </figure>
  );
}
