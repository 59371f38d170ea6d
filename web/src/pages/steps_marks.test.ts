import { expect, test } from "vitest";
import type { Execution } from "../api/records";
import type { StepLines } from "./steps_lines";
import { after, marksOf } from "./steps_marks";

const lines = { runsOf: () => Uint32Array.from([1, 4]), stepAt: (at: number) => at + 1 } as unknown as StepLines;
const run = { status: "completed", recorded_steps: 9, stdout: "x", queries: [], outputs: [] } as unknown as Execution;

test("a run has marks of what happened in it, and of nothing else", () => {
  expect(marksOf({ ...run, stdout: "" }, lines, [3])).toEqual([]);
  expect(marksOf(run, lines, [3])).toEqual([{ kind: "print", label: "print", steps: [2, 5] }]);
  const failed = { ...run, status: "failed", exception: {}, queries: [{ step: 2 }, {}], outputs: [{ step: 4 }] };
  expect(marksOf(failed as unknown as Execution, lines, []).map(({ kind, steps }) => [kind, steps])).toEqual([
    ["query", [2]],
    ["output", [4]],
    ["failure", [9]],
  ]);
});

test("a mark leads to its next step, and from the last one to the first", () => {
  expect([after([2, 5], 1), after([2, 5], 2), after([2, 5], 5)]).toEqual([2, 5, 2]);
});
