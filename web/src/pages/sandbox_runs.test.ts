import { expect, test } from "vitest";
import type { Summary } from "../api/records";
import { isRunning, withRun } from "./sandbox_runs";

const run = (id: string, second: number, status: string) =>
  ({ execution_id: id, created_at: `2026-05-01T10:00:0${second}Z`, status }) as Summary;
const ids = (runs: Summary[]) => runs.map((each) => `${each.execution_id} ${each.status}`);

test("a run that begins is on top, and is replaced when it ends", () => {
  const before = [run("a", 1, "completed")];
  const begun = withRun(before, run("b", 2, "running"));
  expect(ids(begun)).toEqual(["b running", "a completed"]);
  expect(begun.some(isRunning)).toBe(true);
  const ended = withRun(begun, run("b", 2, "failed"));
  expect(ids(ended)).toEqual(["b failed", "a completed"]);
  expect(ended.some(isRunning)).toBe(false);
});

test("the beginning of a run does not replace its end", () => {
  expect(ids(withRun([run("a", 1, "completed")], run("a", 1, "running")))).toEqual(["a completed"]);
});

test("an older run that was not known is at its place", () => {
  const before = [run("c", 3, "completed"), run("a", 1, "completed")];
  expect(ids(withRun(before, run("b", 2, "completed")))).toEqual(["c completed", "b completed", "a completed"]);
});
