// One head's table, large: a row a query, a column a key.
import { useEffect, useRef, useState } from "preact/hooks";
import { number } from "./format";
import { colours, pixels } from "./grid";
import { plain } from "./map-source";

interface Props {
  tokens: string[];
  weights: Float32Array;
  from: number;
  onPick: (from: number) => void;
}

const LARGEST = 520;

export function HeadTable({ tokens, weights, from, onPick }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [under, setUnder] = useState<[number, number]>();
  const size = tokens.length, cell = Math.max(1, Math.floor(LARGEST / size)), side = size * cell;
  useEffect(() => {
    const context = canvas.current!.getContext("2d")!;
    const small = document.createElement("canvas");
    small.width = small.height = size;
    // Square roots, as in the small ones: a weight of 0.05 can then be told from none.
    const roots = Float32Array.from(weights, (weight) => 255 * Math.sqrt(weight));
    small.getContext("2d")!.putImageData(pixels(roots, size, size, colours(canvas.current!)), 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, side, side);
    context.strokeStyle = getComputedStyle(canvas.current!).getPropertyValue("--focus");
    context.lineWidth = Math.min(2, cell);
    context.strokeRect(0, from * cell, side, cell);
  }, [weights, from, document.documentElement.dataset.theme]);
  const at = (event: MouseEvent): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    const place = (offset: number, extent: number) => Math.max(0, Math.min(size - 1, Math.floor((offset / extent) * size)));
    return [place(event.clientY - box.top, box.height), place(event.clientX - box.left, box.width)];
  };
  const [row, column] = under ?? [from, largestOf(weights.subarray(from * size, (from + 1) * size))];
  return (
    <div>
      <canvas ref={canvas} class="head" width={side} height={side} role="img" aria-label={`Weights, ${size} by ${size}`}
        onMouseMove={(event) => setUnder(at(event))} onMouseLeave={() => setUnder(undefined)} onClick={(event) => onPick(at(event)[0])} />
      <p class="figure-line" role="status">“{plain(tokens[row])}” ({row}) gives “{plain(tokens[column])}” ({column}) <b>{number(weights[row * size + column])}</b></p>
    </div>
  );
}

function largestOf(row: Float32Array): number {
  return row.reduce((best, weight, at) => (weight > row[best] ? at : best), 0);
}
