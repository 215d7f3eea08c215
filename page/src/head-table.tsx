// One head's table, large: a row a query, a column a key.
import { useEffect, useRef, useState } from "preact/hooks";
import { number, short } from "./format";
import { colours, pixels } from "./grid";
import { plain } from "./map-source";
import { csv, save, saveCanvas } from "./save";
import { STEPS } from "./steps";
import { isDark } from "./theme";

interface Props {
  name: string;
  tokens: string[];
  weights: Float32Array;
  from: number;
  onPick: (from: number) => void;
}

const LARGEST = 520, BESIDE = 30;
/** Smaller cells have no room for a token's name at their row and column. */
const LABELLED = 11, MARGIN = 78, LONGEST = 10;
/** Pixels of the drawing for one of the page: names are sharp on fine screens, too. */
const SHARPNESS = 2;

type Cell = [row: number, column: number];

export function HeadTable({ name, tokens, weights, from, onPick }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [under, setUnder] = useState<Cell>();
  const size = tokens.length, room = Math.min(LARGEST, document.documentElement.clientWidth - BESIDE);
  const margin = (room - MARGIN) / size >= LABELLED ? MARGIN : 0, cell = Math.max(1, Math.floor((room - margin) / size));
  const sharpness = margin ? SHARPNESS : 1, side = margin + size * cell;
  useEffect(() => {
    const context = canvas.current!.getContext("2d")!;
    context.setTransform(sharpness, 0, 0, sharpness, 0, 0);
    drawTable(context, weights, size, margin, cell);
    if (margin) drawNames(context, tokens, from, margin, cell);
    context.strokeStyle = getComputedStyle(canvas.current!).getPropertyValue("--focus");
    context.lineWidth = Math.min(2, cell);
    context.strokeRect(margin, margin + from * cell, size * cell, cell);
  }, [tokens, weights, from, side, isDark()]);

  const clamped = (at: number) => Math.max(0, Math.min(size - 1, at));
  /** Below 0 where the names are. */
  const at = (event: MouseEvent): Cell => {
    const box = canvas.current!.getBoundingClientRect();
    const place = (offset: number, extent: number) => Math.min(size - 1, Math.floor(((offset / extent) * side - margin) / cell));
    return [place(event.clientY - box.top, box.height), place(event.clientX - box.left, box.width)];
  };
  const point = (event: MouseEvent) => {
    const [row, column] = at(event);
    setUnder(row < 0 || column < 0 ? undefined : [row, column]);
  };
  const choose = (event: MouseEvent) => {
    const [row] = at(event);
    if (row >= 0) onPick(row);
  };
  const [row, column] = under ?? [from, largestOf(weights.subarray(from * size, (from + 1) * size))];
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (event.key === "Enter") onPick(row);
    if (!step) return;
    event.preventDefault();
    setUnder([clamped(row + step[0]), clamped(column + step[1])]);
  };
  const rows = () => tokens.map((_, r) => weights.subarray(r * size, (r + 1) * size));
  return (
    <div>
      <canvas ref={canvas} class="head" width={side * sharpness} height={side * sharpness} style={{ width: side }} tabIndex={0} role="application"
        aria-label={`Weights, ${size} by ${size}; arrow keys read them, Enter looks from a row`} onKeyDown={onKeyDown}
        onMouseMove={point} onMouseLeave={() => setUnder(undefined)} onClick={choose} />
      <p class="figure-line" role="status">“{plain(tokens[row])}” ({row}) gives “{plain(tokens[column])}” ({column}) the weight <b>{number(weights[row * size + column])}</b></p>
      <button class="quiet save" onClick={() => saveCanvas(name, canvas.current!)}>PNG</button>
      <button class="quiet save" onClick={() => save(`${name}.csv`, "text/csv", csv(rows(), tokens, tokens))}>CSV</button>
    </div>
  );
}

/** Square roots, as in the small ones: a weight of 0.05 can then be told from none. */
function drawTable(context: CanvasRenderingContext2D, weights: Float32Array, size: number, margin: number, cell: number): void {
  const small = document.createElement("canvas"), style = getComputedStyle(context.canvas);
  small.width = small.height = size;
  small.getContext("2d")!.putImageData(pixels(weights.map((weight) => 255 * Math.sqrt(weight)), size, size, colours(context.canvas)), 0, 0);
  context.fillStyle = style.getPropertyValue("--card");
  context.fillRect(0, 0, margin + size * cell, margin + size * cell);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, margin, margin, size * cell, size * cell);
}

/** Queries at the left, keys at the top. */
function drawNames(context: CanvasRenderingContext2D, tokens: string[], from: number, margin: number, cell: number): void {
  const style = getComputedStyle(context.canvas), size = Math.min(12, cell - 1);
  context.textBaseline = "middle";
  tokens.forEach((token, at) => {
    const text = short(plain(token), LONGEST), middle = margin + (at + 0.5) * cell;
    context.font = `${at === from ? "bold " : ""}${size}px system-ui, sans-serif`;
    context.fillStyle = style.getPropertyValue(at === from ? "--accent" : "--soft");
    context.textAlign = "right";
    context.fillText(text, margin - 5, middle);
    context.save();
    context.translate(middle, margin - 5);
    context.rotate(-Math.PI / 2);
    context.textAlign = "left";
    context.fillText(text, 0, 0);
    context.restore();
  });
}

function largestOf(row: Float32Array): number {
  return row.reduce((best, weight, at) => (weight > row[best] ? at : best), 0);
}
