import { signal } from "@preact/signals";
import type { Summary } from "../api/records";
import { shortID, titleOf } from "../format";
import { clipped } from "../why/answer";

// Run is what is known of a run that is chosen for the comparison.
export type Run = Pick<Summary, "execution_id" | "created_at"> & { title?: string; code?: string };

// chosenRuns has the runs that are compared, at most two, or undefined if nobody chooses any.
export const chosenRuns = signal<Run[] | undefined>(undefined);

const has = (runs: Run[], { execution_id: id }: Run) => runs.some((each) => each.execution_id === id);

// choose adds a run to the chosen ones, or takes it away. A third one takes the place of the second.
export function choose(runs: Run[], run: Run): Run[] {
  if (has(runs, run)) return runs.filter((each) => each.execution_id !== run.execution_id);
  return runs.length < 2 ? [...runs, run] : [runs[0]!, run];
}

// comparisonOf returns the address of the comparison of two runs: the older one is at the left, so that what the newer one
// has is what was added.
export function comparisonOf(one: Run, other: Run): string {
  const isOlder = new Date(one.created_at) <= new Date(other.created_at);
  const [a, b] = isOlder ? [one, other] : [other, one];
  return `/ui/compare?a=${encodeURIComponent(a.execution_id)}&b=${encodeURIComponent(b.execution_id)}`;
}

const maxTitle = 80; // characters

// nameOf returns what the page calls a run that is chosen.
export const nameOf = (run: Run) => clipped(titleOf(run) || shortID(run.execution_id), maxTitle);

// ChooseRun chooses a run of the list for the comparison.
export function ChooseRun({ of: e }: { of: Summary }) {
  const runs = chosenRuns.value;
  if (!runs) return null;
  return (
    <input
      class="choose"
      type="checkbox"
      aria-label={`Compare ${titleOf(e) || e.execution_id}`}
      checked={has(runs, e)}
      onChange={() => (chosenRuns.value = choose(runs, e))}
    />
  );
}

// Choosing says how many runs are still needed, and leads to the comparison.
export function Choosing() {
  const runs = chosenRuns.value;
  if (!runs) return null;
  const [a, b] = runs;
  return (
    <div class="choosing notice" role="status">
      {a && b ? (
        <a class="button primary" href={comparisonOf(a, b)} onClick={() => (chosenRuns.value = undefined)}>
          Compare the two runs
        </a>
      ) : (
        <span>
          {a ? (
            <>
              Choose another run to compare with{" "}
              <a href={`/ui/executions/${encodeURIComponent(a.execution_id)}`}>
                <strong>{nameOf(a)}</strong>
              </a>
              .
            </>
          ) : (
            "Choose two runs to compare."
          )}
        </span>
      )}
      <button onClick={() => (chosenRuns.value = undefined)}>Cancel</button>
    </div>
  );
}
