import type { Query } from "../api/records";
import { count, duration, statementText } from "../format";
import { Panel } from "../parts/panel";
import { change } from "./diff";

const outcome = (q: Query | undefined) => (!q ? "not sent" : q.status === "ok" ? count(q.rows) : q.status);

// Statements pairs the statements of two runs in the order in which they were sent.
export function Statements({ left, right }: { left: Query[]; right: Query[] }) {
  const number = Math.max(left.length, right.length);
  if (number === 0) return null;
  return (
    <Panel
      title="Statements"
      note={left.length === right.length ? count(number) : `${left.length} and ${right.length}`}
    >
      <div class="scroll-x stacked" tabIndex={0} role="group" aria-label="Statements">
        <table class="compared">
          <thead>
            <tr>
              <th scope="col">Statement</th>
              <th scope="col" class="number">
                Rows, left
              </th>
              <th scope="col" class="number">
                Rows, right
              </th>
              <th scope="col" class="number">
                Time, left
              </th>
              <th scope="col" class="number">
                Time, right
              </th>
              <th scope="col">Change of the time</th>
            </tr>
          </thead>
          <tbody>
            {Array.from({ length: number }, (_, n) => (
              <Pair key={n} left={left[n]} right={right[n]} />
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function Pair({ left, right }: { left: Query | undefined; right: Query | undefined }) {
  const texts = [left, right].map((q) => (q ? statementText(q.query) : ""));
  const isSame = texts[0] === texts[1];
  const isOther = outcome(left) !== outcome(right);
  return (
    <tr class={isSame && !isOther ? "" : "differs"}>
      <td class="sql">
        {isSame ? (
          <pre>{texts[0]}</pre>
        ) : (
          <>
            {left && <pre class="left-text">{texts[0]}</pre>}
            {right && <pre class="right-text">{texts[1]}</pre>}
          </>
        )}
      </td>
      <td class="number" data-column="Rows, left">
        <span>{isOther ? <strong>{outcome(left)}</strong> : outcome(left)}</span>
      </td>
      <td class="number" data-column="Rows, right">
        <span>{isOther ? <strong>{outcome(right)}</strong> : outcome(right)}</span>
      </td>
      <td class="number" data-column="Time, left">
        {left ? duration(left.duration_ms) : "–"}
      </td>
      <td class="number" data-column="Time, right">
        {right ? duration(right.duration_ms) : "–"}
      </td>
      <td class="muted" data-column="Change of the time">
        {left && right ? change(left.duration_ms, right.duration_ms) : ""}
      </td>
    </tr>
  );
}
