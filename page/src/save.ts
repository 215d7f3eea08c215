// What a person takes along: files made in the browser, without any request.

import type { Value } from "./engine";

export function save(name: string, type: string, content: string | Blob): void {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

/** Rows of numbers in full, with their names. */
export function csv(lines: ArrayLike<Value>[], rows?: string[], columns?: string[]): string {
  const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const head = columns ? [["", ...columns].map(quoted).join(",")] : [];
  return [...head, ...lines.map((line, r) => [...(rows ? [quoted(rows[r])] : []), ...Array.from(line, String)].join(","))].join("\n") + "\n";
}

/** A drawing with the colours that it is shown in: styles of the page do not go along with a file. */
function standalone(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = [svg, ...svg.querySelectorAll<SVGElement>("*")], copies = [copy, ...copy.querySelectorAll<SVGElement>("*")];
  originals.forEach((original, n) => {
    const style = getComputedStyle(original);
    for (const name of ["fill", "stroke", "font-size", "font-family"]) copies[n].setAttribute(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const box = svg.viewBox.baseVal;
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  copy.setAttribute("style", `background: ${getComputedStyle(document.body).backgroundColor}`);
  return new XMLSerializer().serializeToString(copy);
}

export function saveSvg(name: string, svg: SVGSVGElement): void {
  save(`${name}.svg`, "image/svg+xml", standalone(svg));
}

export function savePng(name: string, svg: SVGSVGElement): void {
  const box = svg.viewBox.baseVal, image = new Image(), canvas = document.createElement("canvas");
  canvas.width = box.width * 2;
  canvas.height = box.height * 2;
  image.onload = () => {
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    saveCanvas(name, canvas);
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
}

export function saveCanvas(name: string, canvas: HTMLCanvasElement): void {
  canvas.toBlob((blob) => blob && save(`${name}.png`, "image/png", blob));
}
