import type { PendingWrite } from "../api/records";
import { plural } from "../format";

// writeOf returns the write that a captured statement of an execution waits as. Each captured statement has one, in the same
// order. number counts the captured statements from 0.
export function writeOf(writes: PendingWrite[], execution: string, number: number): PendingWrite | undefined {
  const own = writes.filter((write) => write.execution_id === execution);
  return own.sort((a, b) => (a.created_at < b.created_at ? -1 : 1))[number];
}

// decisionOn returns what became of a write.
export function decisionOn({ status, decided_by: by, affected_rows: rows }: PendingWrite): string {
  switch (status) {
    case "pending":
      return "waits for a decision";
    case "applying":
      return "is being applied";
    case "applied":
      return `applied by ${by}: ${plural(rows, "row")}`;
    case "rejected":
      return `rejected by ${by}`;
    case "failed":
      return `applied by ${by}, and failed`;
    case "unknown":
      return "nobody knows whether it was applied";
  }
}
