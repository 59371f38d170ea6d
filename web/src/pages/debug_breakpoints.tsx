import { count } from "../format";
import { hasKeys } from "../parts/has_keys";
import { Panel } from "../parts/panel";
import type { RequestedBreakpoint } from "./debug_session";

// requested returns what the service takes of a breakpoint: each request replaces all of them.
export function requested({ line, condition, hitCondition, logMessage }: RequestedBreakpoint): RequestedBreakpoint {
  return {
    line,
    ...(condition && { condition }),
    ...(hitCondition && { hitCondition }),
    ...(logMessage && { logMessage }),
  };
}

// Breakpoints lists the breakpoints with their conditions.
export function Breakpoints({
  list,
  change,
}: {
  list: (RequestedBreakpoint & { message?: string })[];
  change: (list: RequestedBreakpoint[]) => void;
}) {
  return (
    <Panel title="Breakpoints" note={list.length ? count(list.length) : undefined}>
      {list.length === 0 && (
        <p class="body muted">Click next to a line of the code{hasKeys && ", or press F9 in it"}.</p>
      )}
      <ul class="breakpoints">
        {list.map((breakpoint) => (
          <li key={breakpoint.line}>
            <label>
              Line {breakpoint.line}, if{" "}
              <input
                class="mono"
                value={breakpoint.condition ?? ""}
                placeholder="always"
                spellcheck={false}
                onChange={(event) => {
                  const condition = event.currentTarget.value.trim();
                  change(list.map((b) => (b === breakpoint ? { ...b, condition } : b)));
                }}
              />
            </label>
            <button
              aria-label={`Remove the breakpoint of line ${breakpoint.line}`}
              onClick={() => change(list.filter((b) => b !== breakpoint))}
            >
              ×
            </button>
            {breakpoint.hitCondition && (
              <p class="detail">
                Only at hits <code>{breakpoint.hitCondition}</code>
              </p>
            )}
            {breakpoint.logMessage && (
              <p class="detail">
                Prints <code>{breakpoint.logMessage}</code> and does not stop
              </p>
            )}
            {breakpoint.message && <p class="why">{breakpoint.message}</p>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
