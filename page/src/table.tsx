// A table of numbers: cells light up where they come from or go to, may be typed into, and can be taken along as CSV.
import { useLayoutEffect, useRef } from "preact/hooks";
import { Cells, type Shown, type Spot } from "./cells";
import { csv, save } from "./save";
import { STEPS } from "./steps";
import type { Area, Place } from "./why";

export interface TableProps extends Omit<Shown, "editable"> {
  name: string;
  title: string;
  /** What it is called when it is saved, where that is not its name. */
  file?: string;
  columns?: string[];
  focus?: Place;
  source?: Area;
  onFocus: (place: Place) => void;
  onLeave: (name: string) => void;
  onEdit?: (row: number, column: number, value: number) => void;
}

const LEAVE_MS = 150;

export function Table(props: TableProps) {
  const { name, title, rows, columns, focus, source } = props;
  const body = useRef<HTMLTableSectionElement>(null), cells = useRef<Cells>();
  const latest = useRef(props);
  latest.current = props;
  useLayoutEffect(() => {
    cells.current ??= new Cells(body.current!, ({ row, column }, value) => latest.current.onEdit?.(row, column, value));
    cells.current.draw({ ...props, editable: props.onEdit !== undefined });
  }, [props.values, rows, props.wrong, props.tint]);
  useLayoutEffect(() => cells.current!.light(focus?.matrix === name ? focus : undefined, source));

  const leaving = useRef<number>();
  const enter = (at: Spot) => {
    window.clearTimeout(leaving.current);
    cells.current!.tell(at);
    if (focus?.matrix !== name || at.row !== focus.row || at.column !== focus.column) props.onFocus({ matrix: name, ...at });
  };
  const leave = () => { leaving.current = window.setTimeout(() => props.onLeave(name), LEAVE_MS); };
  const heard = (use: (at: Spot, event: Event) => void) => (event: Event) => {
    const at = cells.current!.spotOf(event.target);
    if (at) use(at, event);
  };
  return (
    <figure class="table" data-table={name}>
      <figcaption>
        <span>{title}</span>
        <button class="quiet save" onClick={() => save(`${props.file ?? name}.csv`, "text/csv", csv(props.values, rows, columns))} title={`Save ${title} as CSV, all digits`}>CSV</button>
      </figcaption>
      <div class="scroll">
        <table role="grid" aria-label={title} onMouseOver={heard(enter)} onMouseLeave={leave}
          onFocusIn={heard((at) => { enter(at); cells.current!.edit(at); })}
          onFocusOut={heard((at, event) => { leave(); leaveField(cells.current!, at, event.target); })}
          onKeyDown={heard((at, event) => onKey(cells.current!, at, event as KeyboardEvent, props))}>
          {columns && (
            <thead><tr>{rows && <td />}{columns.map((label) => <th scope="col" title={label}><span>{label}</span></th>)}</tr></thead>
          )}
          <tbody ref={body} />
        </table>
      </div>
    </figure>
  );
}

/** What is no number stays in its field, marked, until it is mended or taken back. */
function leaveField(cells: Cells, at: Spot, target: EventTarget | null): void {
  if (target instanceof HTMLInputElement && cells.take(at)) cells.close(at);
}

/** Arrow keys walk through a table; with Alt, up and down step a number that is given. Enter takes, Escape takes back. */
function onKey(cells: Cells, at: Spot, event: KeyboardEvent, { onEdit }: TableProps): void {
  const isField = event.target instanceof HTMLInputElement, step = STEPS[event.key];
  if (event.key === "Enter" && isField) cells.take(at);
  if (event.key === "Escape" && isField) cells.reset(at);
  if (!step || (isField && step[0] === 0)) return;
  if (event.altKey) {
    const value = cells.typed(at);
    if (!onEdit || step[0] === 0 || typeof value !== "number") return;
    event.preventDefault();
    onEdit(at.row, at.column, value - step[0]);
    return;
  }
  const next = cells.at({ row: at.row + step[0], column: at.column + step[1] });
  if (!next) return;
  event.preventDefault();
  (next.querySelector("input") ?? next).focus();
}
