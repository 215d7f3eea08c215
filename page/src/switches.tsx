// The switches by hand: mask, scale, heads, what else was given, and mistakes.
import { useMemo, useState } from "preact/hooks";
import type { Engine, Mistake, Specification } from "./engine";
import type { Props } from "./hand";

const reach = (keys: number | null) => (keys === null ? "all" : keys === 1 ? "1 key" : `${keys} keys`);

/** What attn explain has given beyond the switches, in words: it can be taken away here. */
const OTHERS: { [key in keyof Specification]?: (specification: Specification) => string } = {
  softcap: ({ softcap }) => `softcap ${softcap}`,
  window: ({ window }) => `window: ${reach(window![0])} back, ${reach(window![1])} ahead`,
  sink_tokens: ({ sink_tokens }) => `the first ${sink_tokens} always seen`,
  alibi: () => "ALiBi",
  offset: ({ offset }) => `queries begin at key ${offset}`,
  length: ({ length }) => `only the first ${length} keys`,
};

export function Switches({ engine, specification, trace, mistakes, head, onHead, onChange }: Props) {
  const without = (key: keyof Specification) => {
    const { [key]: _, ...rest } = specification;
    return rest as Specification;
  };
  const columns = [trace.q[0].length, trace.v[0].length];
  const counts = Array.from({ length: 64 }, (_, n) => n + 1).filter((heads) => columns.every((width) => width % heads === 0));
  const { mistake } = trace;
  return (
    <div class="switches">
      <label><input type="checkbox" checked={Boolean(specification.causal)}
        onChange={(event) => onChange(event.currentTarget.checked ? { ...specification, causal: true } : without("causal"))} /> causal mask</label>
      <label><input type="checkbox" checked={specification.scale === undefined}
        onChange={(event) => onChange(event.currentTarget.checked ? without("scale") : { ...specification, scale: 1 })} /> scale by 1/√d</label>
      <label title="The columns of q, k and v in so many parts, which attend on their own">heads{" "}
        <select value={String(trace.heads.length)} onChange={(event) => onChange({ ...specification, heads: Number(event.currentTarget.value) })}>
          {counts.map((heads) => <option value={String(heads)}>{heads}</option>)}
        </select>
      </label>
      <HeadChoice count={trace.heads.length} head={head} onHead={onHead} />
      <Breaking engine={engine} mistakes={mistakes} specification={specification}
        onBreak={(id) => onChange(id ? { ...specification, mistake: id } : without("mistake"))} />
      {(Object.keys(OTHERS) as (keyof Specification)[]).filter((key) => specification[key] !== undefined).map((key) => (
        <span class="token">{OTHERS[key]!(specification)}
          <button class="quiet" aria-label={`Without ${OTHERS[key]!(specification)}`} title="Leave out" onClick={() => onChange(without(key))}>×</button>
        </span>
      ))}
      {mistake && (
        <p class="mistake" role="status">
          <b>{mistake.name}.</b> {mistake.what} <b>Instead:</b> {mistake.fix}{" "}
          <i>{mistake.shows ? `Steps 4 and 5 show it: ✗ with the wrong number, below the right one${mistake.note ? ` (${mistake.note})` : ""}.`
            : "These numbers can't show it: they stay what they are."}</i>
        </p>
      )}
    </div>
  );
}

interface BreakingProps {
  engine: Engine;
  mistakes: Mistake[];
  specification: Specification;
  onBreak: (id: string) => void;
}

/** The catalogue, first what these numbers show: asked for once somebody reaches for the list, since it makes all mistakes. */
function Breaking({ engine, mistakes, specification, onBreak }: BreakingProps) {
  const [shown, setShown] = useState<{ of: Specification; ids: Set<string> }>();
  const ask = () => {
    if (shown?.of !== specification) setShown({ of: specification, ids: new Set(engine.shownMistakes(specification)) });
  };
  const option = (one: Mistake) => <option value={one.id}>{one.name}</option>;
  const options = useMemo(() => {
    if (!shown) return mistakes.map(option);
    return [
      <optgroup label="these numbers show">{mistakes.filter((one) => shown.ids.has(one.id)).map(option)}</optgroup>,
      <optgroup label="these numbers can't show">{mistakes.filter((one) => !shown.ids.has(one.id)).map(option)}</optgroup>,
    ];
  }, [mistakes, shown]);
  return (
    <label>break it{" "}
      <select value={specification.mistake ?? ""} onPointerEnter={ask} onFocus={ask} onChange={(event) => onBreak(event.currentTarget.value)}>
        <option value="">not at all</option>
        {options}
      </select>
    </label>
  );
}

/** Which of several heads is shown; nothing where there is one. */
export function HeadChoice({ count, head, onHead }: { count: number; head: number; onHead: (head: number) => void }) {
  if (count === 1) return null;
  return (
    <label>showing head{" "}
      <select value={String(head)} onChange={(event) => onHead(Number(event.currentTarget.value))}>
        {Array.from({ length: count }, (_, h) => <option value={String(h)}>{h}</option>)}
      </select>
    </label>
  );
}
