import { signal } from "@preact/signals";
import type { Summary } from "../api/records";
import { titleOf } from "../format";

// chosenRuns has the runs that are compared, at most two, or undefined if nobody chooses any.
export const chosenRuns = signal<string[] | undefined>(undefined);

// choose adds a run to the chosen ones, or takes it away. A third one takes the place of the second.
export function choose(runs: string[], id: string): string[] {
  if (runs.includes(id)) return runs.filter((each) => each !== id);
  return runs.length < 2 ? [...runs, id] : [runs[0]!, id];
}

// ChooseRun chooses a run of the list for the comparison.
export function ChooseRun({ of: e }: { of: Summary }) {
  const runs = chosenRuns.value;
  if (!runs) return null;
  return (
    <input
      class="choose"
      type="checkbox"
      aria-label={`Compare ${titleOf(e) || e.execution_id}`}
      checked={runs.includes(e.execution_id)}
      onChange={() => (chosenRuns.value = choose(runs, e.execution_id))}
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
        <a
          class="button primary"
          href={`/ui/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`}
          onClick={() => (chosenRuns.value = undefined)}
        >
          Compare the two runs
        </a>
      ) : (
        <span>{a ? "Choose another run to compare with." : "Choose two runs to compare."}</span>
      )}
      <button onClick={() => (chosenRuns.value = undefined)}>Cancel</button>
    </div>
  );
}
