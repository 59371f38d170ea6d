import { expect, test } from "vitest";
import type { PendingWrite } from "../api/records";
import { decisionOn, writeOf } from "./execution_writes";

const write = (id: string, execution: string, second: number) =>
  ({ id, execution_id: execution, created_at: `2026-05-01T10:00:0${second}Z` }) as PendingWrite;

test("the captured statements of an execution have its writes in their order", () => {
  const writes = [write("c", "e1", 3), write("b", "e2", 2), write("a", "e1", 1)];
  expect(writeOf(writes, "e1", 0)?.id).toBe("a");
  expect(writeOf(writes, "e1", 1)?.id).toBe("c");
  expect(writeOf(writes, "e1", 2)).toBeUndefined();
  expect(writeOf(writes, "e2", 0)?.id).toBe("b");
});

test.each([
  ["pending", "waits for a decision"],
  ["applied", "applied by ada: 1,200 rows"],
  ["rejected", "rejected by ada"],
  ["failed", "applied by ada, and failed"],
] as const)("a write that is %s: %s", (status, text) => {
  expect(decisionOn({ status, decided_by: "ada", affected_rows: 1200 } as PendingWrite)).toBe(text);
});
