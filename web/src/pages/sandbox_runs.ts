import type { Summary } from "../api/records";

export const isRunning = (run: Summary) => run.status === "running" || run.status === "created";

// withRun returns the runs of a list, newest first, with the new state of one. Events may come in any order: one that tells of
// the beginning does not replace the end.
export function withRun(runs: Summary[], run: Summary): Summary[] {
  const index = runs.findIndex((known) => known.execution_id === run.execution_id);
  if (index >= 0) return isRunning(run) ? runs : runs.with(index, run);
  const place = runs.findIndex((known) => known.created_at <= run.created_at);
  return runs.toSpliced(place < 0 ? runs.length : place, 0, run);
}
