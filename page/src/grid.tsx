// Every head's table, small, on one canvas: thousands of elements would be slow.
import { useEffect, useRef } from "preact/hooks";
import { headName, layerName, type MapInfo } from "./map-source";
import { saveCanvas } from "./save";
import { STEPS } from "./steps";
import { isDark } from "./theme";

interface Props {
  info: MapInfo;
  thumbnails: { side: number; values: Uint8Array };
  layer: number;
  head: number;
  onPick: (layer: number, head: number) => void;
}

const CELL = 34, GAP = 4, MARGIN = 26, TOP = 4;
/** The height of the line that numbers the heads. */
const NUMBERS = 20;

/** The colours of weight 0 and weight 1, as the page's style has them now. */
export function colours(element: Element): [number, number, number][] {
  const style = getComputedStyle(element), probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
  return ["--card", "--plus"].map((name) => {
    probe.fillStyle = style.getPropertyValue(name);
    probe.fillRect(0, 0, 1, 1);
    const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
    return [red, green, blue];
  });
}

/** Values from 0 to 255 as pixels between the two colours. */
export function pixels(values: ArrayLike<number>, width: number, height: number, [low, high]: [number, number, number][]): ImageData {
  const image = new ImageData(width, height);
  for (let n = 0; n < width * height; ++n) {
    const share = values[n] / 255;
    for (let c = 0; c < 3; ++c) image.data[4 * n + c] = low[c] + (high[c] - low[c]) * share;
    image.data[4 * n + 3] = 255;
  }
  return image;
}

export function Grid({ info, thumbnails, layer, head, onPick }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const step = CELL + GAP, width = MARGIN + info.heads * step, height = TOP + info.layers * step;
  useEffect(() => {
    const context = canvas.current!.getContext("2d")!, { side, values } = thumbnails;
    const style = getComputedStyle(canvas.current!), two = colours(canvas.current!);
    const small = document.createElement("canvas");
    small.width = small.height = side;
    context.fillStyle = style.getPropertyValue("--card");
    context.fillRect(0, 0, width, height);
    context.imageSmoothingEnabled = false;
    context.fillStyle = style.getPropertyValue("--soft");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    for (let l = 0; l < info.layers; ++l) {
      context.fillText(layerName(info, l), 11, TOP + l * step + CELL / 2 + 4);
      for (let h = 0; h < info.heads; ++h) {
        const begin = (l * info.heads + h) * side * side;
        small.getContext("2d")!.putImageData(pixels(values.subarray(begin, begin + side * side), side, side, two), 0, 0);
        context.drawImage(small, MARGIN + h * step, TOP + l * step, CELL, CELL);
      }
    }
  }, [thumbnails, isDark()]);
  useEffect(() => {
    const frame = canvas.current!.parentElement!, top = NUMBERS + TOP + layer * step;
    if (top - NUMBERS < frame.scrollTop || top + step > frame.scrollTop + frame.clientHeight) frame.scrollTop = top - frame.clientHeight / 2;
  }, [layer]);
  const at = (event: MouseEvent): [number, number] | undefined => {
    const box = canvas.current!.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) * (width / box.width) - MARGIN) / step);
    const y = Math.floor(((event.clientY - box.top) * (height / box.height) - TOP) / step);
    return x >= 0 && x < info.heads && y >= 0 && y < info.layers ? [y, x] : undefined;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = STEPS[event.key];
    if (!move) return;
    event.preventDefault();
    onPick(Math.min(info.layers - 1, Math.max(0, layer + move[0])), Math.min(info.heads - 1, Math.max(0, head + move[1])));
  };
  return (
    <>
    <div class="scroll grid">
      <div class="numbers" aria-hidden="true" style={{ width, paddingLeft: MARGIN }}>
        {Array.from({ length: info.heads }, (_, h) => <span style={{ width: step, paddingRight: GAP }}>{headName(info, h)}</span>)}
      </div>
      <canvas ref={canvas} width={width} height={height} tabIndex={0} role="application"
        aria-label={`All ${info.layers * info.heads} heads; arrow keys choose one. Chosen: layer ${layerName(info, layer)}, head ${headName(info, head)}`}
        onClick={(event) => { const place = at(event); if (place) onPick(...place); }} onKeyDown={onKeyDown} />
      <div class="chosen" style={{ left: MARGIN + head * step - 2, top: NUMBERS + TOP + layer * step - 2, width: CELL + 4, height: CELL + 4 }} />
    </div>
    <button class="quiet save" onClick={() => saveCanvas("all-heads", canvas.current!)}>PNG</button>
    </>
  );
}
