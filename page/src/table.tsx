// A table of numbers: cells light up where they come from or go to, may be typed into, and can be taken along as CSV.
//
// Tables of 64 tokens have 4,096 cells: events are heard by the table and not by each of them, and a row is drawn anew only
// where something in it has changed.
import { Component } from "preact";
import { useRef } from "preact/hooks";
import type { Value, Values } from "./engine";
import { full, number, parseNumber } from "./format";
import { save } from "./save";
import type { Area, Place } from "./why";

export interface TableProps {
  name: string;
  title: string;
  values: Values;
  rows?: string[];
  columns?: string[];
  /** "sign": colour by sign and size; "weight": darker where larger. */
  tint?: "sign" | "weight";
  focus?: Place;
  source?: Area;
  /** What a mistake makes of the values. */
  wrong?: Values;
  onFocus?: (place: Place) => void;
  onLeave?: (name: string) => void;
  onEdit?: (row: number, column: number, value: number) => void;
  isChanged?: (row: number) => boolean;
}

const FIELD_DECIMALS = 6;
const LEAVE_MS = 150;

const cellId = (name: string, row: number, column: number) => `${name}-${row}-${column}`;

/** The place of a cell, of its field, or of what lies in it. */
function placeOf(target: EventTarget | null): Place | undefined {
  const cell = target instanceof Element ? target.closest("td")?.firstElementChild : undefined;
  const match = /^(\w+)-(\d+)-(\d+)$/.exec(cell?.id ?? "");
  return match ? { matrix: match[1], row: Number(match[2]), column: Number(match[3]) } : undefined;
}

const TINTS = 20;

/** A class a shade: thousands of colours that are mixed in style attributes took longer than all else. */
export function tintRules(): string {
  return Array.from({ length: TINTS }, (_, n) => n + 1).flatMap((n) => ["plus", "minus"].map((sign) =>
    `.${sign}-${n} { background: color-mix(in srgb, var(--${sign}) ${Math.round((n / TINTS) * 55)}%, transparent); }`)).join("\n");
}

function tintOf(value: Value, tint: TableProps["tint"], largest: number): string {
  if (!tint || typeof value !== "number" || value === 0) return "";
  const share = Math.min(1, tint === "weight" ? value : Math.abs(value) / (largest || 1));
  const shade = Math.ceil(share * TINTS);
  return `${tint === "weight" || value > 0 ? "plus" : "minus"}-${shade} `;
}

function differs(a: Value, b: Value): boolean {
  if (typeof a !== "number" || typeof b !== "number") return a !== b;
  return Math.abs(a - b) > 1e-9 * Math.max(1, Math.abs(b));
}

const sameValues = (a?: Value[], b?: Value[]) => a === b || (a?.length === b?.length && Boolean(a?.every((value, n) => value === b![n])));

interface RowProps {
  name: string;
  title: string;
  row: number;
  label?: string;
  columns?: string[];
  values: Value[];
  wrong?: Value[];
  tint?: TableProps["tint"];
  largest: number;
  begin: number;
  end: number;
  focus: number;
  changed: boolean;
  editable: boolean;
}

class Row extends Component<RowProps> {
  shouldComponentUpdate(next: RowProps): boolean {
    const now = this.props;
    const plain = Object.keys(next) as (keyof RowProps)[];
    return plain.some((key) => {
      if (key === "values" || key === "wrong" || key === "columns") return !sameValues(now[key] as Value[], next[key] as Value[]);
      return now[key] !== next[key];
    });
  }

  render({ name, title, row, label, columns, values, wrong, tint, largest, begin, end, focus, changed, editable }: RowProps) {
    return (
      <tr>
        {label !== undefined && <th scope="row" title={label}><span>{label}</span>{changed && <sup title="changed by hand">✎</sup>}</th>}
        {values.map((value, c) => {
          const isWrong = wrong !== undefined && differs(wrong[c], value);
          const classes = `${tintOf(value, tint, largest)}${focus === c ? "focus " : ""}${c >= begin && c < end ? "source " : ""}${isWrong ? "wrong" : ""}`.trim();
          const about = `${title}, ${label ?? `row ${row}`}, ${columns?.[c] ?? `column ${c}`}`;
          return (
            <td class={classes || undefined}>
              {editable
                ? <input id={cellId(name, row, c)} aria-label={about} inputMode="decimal" value={number(value, FIELD_DECIMALS)} title={full(value)} />
                : <span id={cellId(name, row, c)} tabIndex={0} aria-label={`${about}: ${number(value)}`} title={full(value)}>{number(value)}</span>}
              {isWrong && <small title={full(wrong[c])}>{number(wrong[c])}</small>}
            </td>
          );
        })}
      </tr>
    );
  }
}

function csvOf({ values, rows, columns }: TableProps): string {
  const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const head = columns ? [["", ...columns].map(quoted).join(",")] : [];
  return [...head, ...values.map((line, r) => [...(rows ? [quoted(rows[r])] : []), ...line.map(full)].join(","))].join("\n") + "\n";
}

/** Arrow keys walk through a table. */
function walk(event: KeyboardEvent, { matrix, row, column }: Place): void {
  const steps: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  const step = steps[event.key];
  const target = step && document.getElementById(cellId(matrix, row + step[0], column + step[1]));
  if (!target) return;
  event.preventDefault();
  target.focus();
}

export function Table(props: TableProps) {
  const { name, title, values, rows, columns, tint, focus, source, wrong, onFocus, onEdit } = props;
  const largest = Math.max(...values.map((line) => Math.max(...line.map((value) => (typeof value === "number" ? Math.abs(value) : 0)))));
  const leaving = useRef<number>();
  const enter = (event: Event) => {
    const place = placeOf(event.target);
    if (!place) return;
    window.clearTimeout(leaving.current);
    if (place.matrix !== focus?.matrix || place.row !== focus.row || place.column !== focus.column) onFocus?.(place);
  };
  const leave = () => { leaving.current = window.setTimeout(() => props.onLeave?.(name), LEAVE_MS); };

  /** Taken with Enter or when one leaves the field; what is no number stays there, marked. */
  const take = (input: HTMLInputElement, place: Place) => {
    const old = values[place.row][place.column], next = parseNumber(input.value);
    input.classList.toggle("bad", next === undefined);
    if (next === undefined) return;
    if (input.value !== number(old, FIELD_DECIMALS) && next !== old) onEdit!(place.row, place.column, next);
    input.value = number(next, FIELD_DECIMALS);
  };
  const onChange = (event: Event) => {
    const place = placeOf(event.target);
    if (place && onEdit) take(event.target as HTMLInputElement, place);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const place = placeOf(event.target);
    if (!place) return;
    const input = event.target instanceof HTMLInputElement ? event.target : undefined;
    const old = values[place.row][place.column];
    if (!input) return walk(event, place);
    if (event.key === "Enter") take(input, place);
    else if (event.key === "Escape") input.value = number(old, FIELD_DECIMALS);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      if (!event.altKey) return walk(event, place);
      event.preventDefault();
      if (typeof old === "number") onEdit!(place.row, place.column, old + (event.key === "ArrowUp" ? 1 : -1));
    }
  };
  return (
    <figure class="table" data-table={name}>
      <figcaption>
        <span>{title}</span>
        <button class="quiet" onClick={() => save(`${name}.csv`, "text/csv", csvOf(props))} title={`Save ${title} as CSV, all digits`}>CSV</button>
      </figcaption>
      <div class="scroll">
        <table onMouseOver={enter} onMouseLeave={leave} onFocusIn={enter} onFocusOut={leave} onChange={onChange} onKeyDown={onKeyDown}>
          {columns && (
            <thead><tr>{rows && <td />}{columns.map((label) => <th scope="col" title={label}><span>{label}</span></th>)}</tr></thead>
          )}
          <tbody>
            {values.map((line, r) => {
              const lit = source && (source.row === undefined || source.row === r);
              return (
                <Row name={name} title={title} row={r} label={rows?.[r]} columns={columns} values={line} wrong={wrong?.[r]} tint={tint}
                  largest={largest} begin={lit ? source.begin : 0} end={lit ? source.end : 0}
                  focus={focus?.matrix === name && focus.row === r ? focus.column : -1} changed={Boolean(props.isChanged?.(r))}
                  editable={onEdit !== undefined} />
              );
            })}
          </tbody>
        </table>
      </div>
    </figure>
  );
}
