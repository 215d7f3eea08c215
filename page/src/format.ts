// Numbers as the page shows them: few digits, a true minus sign. Their full digits are in the titles and the exports.
import type { Value } from "./engine";

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function superscript(power: number): string {
  const digits = [...String(Math.abs(power))].map((digit) => SUPERSCRIPTS[Number(digit)]).join("");
  return (power < 0 ? "⁻" : "") + digits;
}

/** At most so many decimals, without trailing zeros; what would keep hardly a digit has a power of ten. */
export function number(value: Value, decimals = 3): string {
  if (value === "-inf") return "−∞";
  if (value === "inf") return "∞";
  if (value === "nan") return "NaN";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 0.5 * 10 ** (1 - decimals)) {
    const [digits, power] = value.toExponential(2).split("e");
    return `${Number(digits)}·10${superscript(Number(power))}`.replace("-", "−");
  }
  return String(Number(value.toFixed(decimals))).replace("-", "−");
}

/** In brackets where a minus sign would stand inside a product. */
export function factor(value: Value): string {
  const text = number(value);
  return text.startsWith("−") ? `(${text})` : text;
}

/** All digits, as they were computed. */
export function full(value: Value): string {
  return typeof value === "number" ? String(value) : number(value);
}

export function count(value: number): string {
  return value >= 1e15 ? number(value) : Math.round(value).toLocaleString("en-US");
}

/** "1 row", "2 rows". */
export function counted(value: number, thing: string): string {
  return `${count(value)} ${thing}${value === 1 ? "" : "s"}`;
}

export function bytes(value: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB", "PB", "EB"];
  let unit = 0;
  while (value >= 1000 && unit + 1 < units.length) {
    value /= 1000;
    ++unit;
  }
  return `${unit === 0 ? Math.round(value) : Number(value.toPrecision(3))} ${units[unit]}`;
}

export function duration(seconds: number): string {
  if (seconds < 1e-3) return `${Number((seconds * 1e6).toPrecision(3))} µs`;
  if (seconds < 1) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  if (seconds < 600) return `${Number(seconds.toPrecision(3))} s`;
  if (seconds < 48 * 3600) return `${Number((seconds / 3600).toPrecision(3))} hours`;
  return `${Number((seconds / 86400).toPrecision(3))} days`;
}

/** What a person typed: a number with a point or a comma, a true minus or a plain one; nothing where it is none. */
export function parseNumber(text: string): number | undefined {
  const plain = text.trim().replace("−", "-").replace(",", ".");
  const value = Number(plain);
  return plain !== "" && Number.isFinite(value) && Math.abs(value) < 1e300 ? value : undefined;
}

/** At most so many characters, the last of them "…" where there were more. */
export function short(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
