// The KV cache, token by token: what is appended, what is read, and what is not computed again.
import type { Trace } from "./engine";
import { counted, number } from "./format";
import { HeadChoice } from "./switches";

interface Props {
  trace: Trace;
  head: number;
  onHead: (head: number) => void;
  onCausal: () => void;
  step: number;
  onChange: (changed: { step: number }) => void;
}

export function Cache({ trace, head, onHead, onCausal, step, onChange }: Props) {
  const steps = trace.heads[head].steps ?? [];
  const last = steps.length - 1, at = Math.min(step, last), now = steps[at];
  if (!now) return <p class="problem" role="alert">A cache needs the causal mask: a token may not wait for those behind it. <button onClick={onCausal}>switch it on</button></p>;
  const tokens = at + 1;
  const scores = steps.slice(0, tokens).reduce((sum, each) => sum + each.keys.length, 0);
  const again = steps.slice(0, tokens).reduce((sum, _, n) => sum + steps.slice(0, n + 1).reduce((inner, each) => inner + each.keys.length, 0), 0);
  const rows = (tokens * (tokens + 1)) / 2;
  const width = trace.out[0].length / trace.heads.length;
  const plain = trace.out[now.token].slice(head * width, (head + 1) * width);
  return (
    <>
      <p class="lead">A text grows by a token at a time. Keys and values of old tokens do not change, so they are kept; only the new token's query, key and value are made.</p>
      <div class="switches"><span class="player">
        <button onClick={() => onChange({ step: at - 1 })} disabled={at === 0} aria-label="The token before">◀</button>
        <button onClick={() => onChange({ step: at + 1 })} disabled={at === last} aria-label="The next token">▶</button>
        <HeadChoice count={trace.heads.length} head={head} onHead={onHead} />
        <span role="status">token {tokens} of {steps.length}: “{trace.tokens[now.token]}”</span>
      </span></div>
      <div class="side">
        <figure class="table"><figcaption><span>The cache</span></figcaption>
          <div class="scroll"><table>
            <thead><tr><td /><th scope="col">key</th><th scope="col">value</th><th scope="col">score</th><th scope="col">weight</th></tr></thead>
            <tbody>
              {steps.slice(0, tokens).map((each, n) => {
                const read = now.keys.indexOf(each.token);
                return (
                  <tr class={n === at ? "new" : ""}>
                    <th scope="row" title={trace.tokens[each.token]}><span>{trace.tokens[each.token]}</span>{n === at ? " (appended)" : ""}</th>
                    <td>{each.appended.k.map((value) => number(value)).join(", ")}</td>
                    <td>{each.appended.v.map((value) => number(value)).join(", ")}</td>
                    <td>{read < 0 ? "not seen" : number(now.scores[read])}</td>
                    <td>{read < 0 ? "0" : number(now.weights[read])}</td>
                  </tr>
                );
              })}
            </tbody>
          </table></div>
        </figure>
        <div class="story">
          <p><b>Output of “{trace.tokens[now.token]}”.</b> ({now.out.map((value) => number(value)).join(", ")}){" "}
            {JSON.stringify(now.out) === JSON.stringify(plain) ? "– to the last bit that of the whole text at once." : `– the whole text at once gives (${plain.map((value) => number(value)).join(", ")}).`}</p>
          <p><b>Work so far.</b> With the cache {counted(tokens, "row")} of q, k and v and {counted(scores, "score")}; without it, everything again for every token: {counted(rows, "row")} and {counted(again, "score")}.</p>
          <p class="done"><b>Saved.</b> {counted(rows - tokens, "row")} and {counted(again - scores, "score")}{again > 0 ? `: ${Math.round((1 - scores / again) * 100)} % of the scores` : ""}.</p>
        </div>
      </div>
    </>
  );
}
