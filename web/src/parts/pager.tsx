import type { ComponentChildren } from "preact";
import { count } from "../format";

// Pager moves through the parts of something long, a page of size parts at a time, and jumps to the part with a number. start
// is the index of the first part that is shown. Numbers of parts begin at first, as those that one sees do.
export function Pager({
  what,
  start,
  size,
  total,
  first = 1,
  go,
  children,
}: {
  what: string; // for example "row"
  start: number;
  size: number;
  total: number;
  first?: number;
  go: (start: number) => void;
  children?: ComponentChildren; // what is shown
}) {
  if (!children && total <= size) return null;
  const jump = (number: number) => go(Math.max(0, Math.min(total - size, Math.floor(number) - first)));
  return (
    <div class="pager">
      {children && (
        <span class="muted" role="status">
          {children}
        </span>
      )}
      {total > size && (
        <>
          <label>
            Go to {what}
            <input
              type="number"
              min={first}
              max={total - 1 + first}
              placeholder={count(start + first)}
              onChange={({ currentTarget }) => {
                if (currentTarget.value) jump(Number(currentTarget.value));
                currentTarget.value = "";
              }}
            />
          </label>
          <button disabled={start === 0} onClick={() => go(Math.max(0, start - size))} aria-label={`Previous ${what}s`}>
            Previous
          </button>
          <button disabled={start + size >= total} onClick={() => go(start + size)} aria-label={`Next ${what}s`}>
            Next
          </button>
          <button
            disabled={start + size >= total}
            onClick={() => go(Math.max(0, total - size))}
            aria-label={`Last ${what}s`}
          >
            Last
          </button>
        </>
      )}
    </div>
  );
}
