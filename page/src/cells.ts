// The cells of a table, written by hand into the document: 64 tokens make 20,000 of them, and an edit may touch no more
// than those that show something else.
import { full, number, parseNumber } from "./format";
import type { Value, Values } from "./engine";
import type { Area } from "./why";

export interface Shown {
  values: Values;
  rows?: string[];
  /** "sign": colour by sign and size; "weight": darker where larger. */
  tint?: "sign" | "weight";
  /** What a mistake makes of the values. */
  wrong?: Values;
  editable: boolean;
  /** Rows that a person has changed, though they come from elsewhere. */
  changed?: (row: number) => boolean;
}

export interface Spot {
  row: number;
  column: number;
}

const SHADES = 20;
const FIELD_DECIMALS = 6;

/** A class a shade: thousands of colours that are mixed in style attributes took longer than all else. */
export function tintRules(): string {
  return Array.from({ length: SHADES }, (_, n) => n + 1).flatMap((n) => ["plus", "minus"].map((sign) =>
    `.${sign}-${n} { background: color-mix(in srgb, var(--${sign}) ${Math.round((n / SHADES) * 55)}%, transparent); }`)).join("\n");
}

/** What the darkest shade stands for: 1, 2 or 5 times a power of ten, so that an edit seldom gives all cells another shade. */
function darkest({ values, tint }: Shown): number {
  if (tint !== "sign") return 1;
  let largest = 0;
  for (const line of values) for (const value of line) if (typeof value === "number") largest = Math.max(largest, Math.abs(value));
  const power = 10 ** Math.floor(Math.log10(largest || 1));
  return power * [1, 2, 5, 10].find((step) => step * power >= largest)!;
}

/** The class of a value's shade. */
export function shadeOf(value: Value, tint: Shown["tint"], most: number): string {
  if (!tint || typeof value !== "number" || value === 0) return "";
  return `${value > 0 ? "plus" : "minus"}-${Math.ceil(Math.min(1, Math.abs(value) / most) * SHADES)}`;
}

function differs(a: Value, b: Value): boolean {
  if (typeof a !== "number" || typeof b !== "number") return a !== b;
  return Math.abs(a - b) > 1e-9 * Math.max(1, Math.abs(b));
}

const fieldOf = (cell: HTMLTableCellElement) => cell.querySelector("input") ?? undefined;

/** As it is typed: 1e9 where a table has 1·10⁹. */
function fieldText(value: Value): string {
  const text = number(value, FIELD_DECIMALS);
  return parseNumber(text) === undefined ? full(value) : text;
}

function setField(cell: HTMLTableCellElement, text: string): void {
  const field = fieldOf(cell);
  if (!field) return;
  field.value = field.defaultValue = text;
  field.classList.remove("bad");
}

export class Cells {
  private shown?: Shown;
  private most = 0;
  private lines: HTMLTableCellElement[][] = [];
  private lit: HTMLTableCellElement[] = [];

  constructor(private readonly body: HTMLTableSectionElement, private readonly onEdit: (at: Spot, value: number) => void) {}

  draw(next: Shown): void {
    const { shown: last, most: lastMost } = this;
    const isBuilt = !last || last.values.length !== next.values.length || last.values[0].length !== next.values[0].length ||
      last.editable !== next.editable;
    this.shown = next;
    this.most = darkest(next);
    if (isBuilt) this.build(next);
    const all = isBuilt || this.most !== lastMost || last.tint !== next.tint;
    next.values.forEach((line, row) => {
      this.drawLabel(row, next);
      const old = last?.values[row], wrong = next.wrong?.[row], oldWrong = last?.wrong?.[row];
      line.forEach((value, column) => {
        const isNew = value !== old?.[column];
        if (all || isNew || wrong?.[column] !== oldWrong?.[column]) this.drawCell(this.lines[row][column], value, wrong?.[column], isNew);
      });
    });
  }

  /** Lights up a number and what made it. */
  light(focus: Spot | undefined, source: Area | undefined): void {
    for (const cell of this.lit) cell.classList.remove("focus", "source");
    this.lit = [];
    if (source) {
      const lines = source.row === undefined ? this.lines : [this.lines[source.row] ?? []];
      for (const line of lines) for (const cell of line.slice(source.begin, source.end)) this.mark(cell, "source");
    }
    const cell = focus && this.at(focus);
    if (cell) this.mark(cell, "focus");
  }

  at({ row, column }: Spot): HTMLTableCellElement | undefined {
    return this.lines[row]?.[column];
  }

  /** The place of a cell, of its field, or of what lies in it. */
  spotOf(target: EventTarget | null): Spot | undefined {
    const cell = target instanceof Element ? target.closest("td") : undefined;
    const row = (cell?.parentElement as HTMLTableRowElement | undefined)?.sectionRowIndex ?? -1, column = this.lines[row]?.indexOf(cell!) ?? -1;
    return column >= 0 ? { row, column } : undefined;
  }

  /** All digits of a cell: given once somebody looks at it. */
  tell(at: Spot): void {
    this.at(at)!.title = full(this.valueAt(at));
  }

  /** Puts a field over a cell, which what was typed leaves with Enter, or when one goes elsewhere. */
  edit(at: Spot): void {
    const cell = this.at(at)!;
    if (!this.shown!.editable || fieldOf(cell)) return;
    const field = Object.assign(document.createElement("input"), { autocomplete: "off" });
    field.setAttribute("aria-label", `${this.shown!.rows?.[at.row] ?? `row ${at.row}`}, column ${at.column}`);
    // The cell itself would be a second stop for Tab, and going back from its field would end there.
    cell.tabIndex = -1;
    cell.classList.add("edited");
    cell.append(field);
    setField(cell, fieldText(this.valueAt(at)));
    field.focus();
    field.select();
  }

  /** What a cell's field holds: the cell's own value, to its last digit, where nothing else was typed; nothing for what is no number. */
  typed(at: Spot): Value | undefined {
    const field = fieldOf(this.at(at)!), own = this.valueAt(at);
    return !field || field.value === fieldText(own) ? own : parseNumber(field.value);
  }

  /** False where what was typed is no number: it stays, marked. */
  take(at: Spot): boolean {
    const field = fieldOf(this.at(at)!), value = this.typed(at);
    if (field) {
      field.classList.toggle("bad", value === undefined);
      field.title = value === undefined ? "No number: write one such as -1.5; Escape takes it back" : "";
    }
    if (typeof value === "number" && value !== this.valueAt(at)) this.onEdit(at, value);
    return value !== undefined;
  }

  /** Takes the field away from a cell. */
  close(at: Spot): void {
    const cell = this.at(at)!;
    fieldOf(cell)?.remove();
    cell.classList.remove("edited");
    cell.tabIndex = 0;
  }

  /** What was typed is forgotten. */
  reset(at: Spot): void {
    setField(this.at(at)!, fieldText(this.valueAt(at)));
  }

  private valueAt({ row, column }: Spot): Value {
    return this.shown!.values[row][column];
  }

  private mark(cell: HTMLTableCellElement, mark: "focus" | "source"): void {
    cell.classList.add(mark);
    this.lit.push(cell);
  }

  private build({ values, rows }: Shown): void {
    this.lit = [];
    this.lines = [];
    this.body.replaceChildren(...values.map((line) => {
      const row = document.createElement("tr");
      if (rows) row.append(Object.assign(document.createElement("th"), { scope: "row" }));
      const cells = line.map(() => {
        const cell = document.createElement("td");
        cell.tabIndex = 0;
        cell.append("");
        return cell;
      });
      this.lines.push(cells);
      row.append(...cells);
      return row;
    }));
  }

  private drawLabel(row: number, { rows, changed }: Shown): void {
    const head = (this.body.children[row] as HTMLTableRowElement).cells[0], label = rows?.[row];
    if (label === undefined) return;
    const isChanged = Boolean(changed?.(row));
    if (head.title === label && head.classList.contains("changed") === isChanged) return;
    head.title = label;
    head.classList.toggle("changed", isChanged);
    head.replaceChildren(Object.assign(document.createElement("span"), { textContent: label }));
    if (isChanged) head.append(Object.assign(document.createElement("sup"), { textContent: "✎", title: "changed by hand" }));
  }

  private drawCell(cell: HTMLTableCellElement, value: Value, wrong: Value | undefined, isNew: boolean): void {
    const { tint, editable } = this.shown!;
    const isWrong = wrong !== undefined && differs(wrong, value), hasMore = cell.firstChild !== cell.lastChild;
    const text = number(value, editable ? FIELD_DECIMALS : undefined);
    const classes = `${editable ? "given " : ""}${shadeOf(value, tint, this.most)}${isWrong ? " wrong" : ""}${hasMore && fieldOf(cell) ? " edited" : ""}`;
    if (cell.firstChild!.nodeValue !== text) cell.firstChild!.nodeValue = text;
    if (cell.className !== classes) cell.className = classes;
    if (cell.title) cell.title = full(value);
    if (hasMore) cell.querySelector("small")?.remove();
    // What somebody types there stays, unless the number itself has changed.
    if (hasMore && isNew) setField(cell, fieldText(value));
    if (isWrong) cell.append(Object.assign(document.createElement("small"), { textContent: number(wrong), title: full(wrong) }));
  }
}
