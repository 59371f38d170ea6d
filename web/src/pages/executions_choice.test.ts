import { expect, test } from "vitest";
import { choose, comparisonOf, nameOf, type Run } from "./executions_choice";

const run = (id: string, minute = 0): Run => ({
  execution_id: id,
  created_at: `2026-11-30T08:${String(minute).padStart(2, "0")}:00.5+02:00`,
  code: `x = "${id}"`,
});
const [a, b, c] = [run("a"), run("b"), run("c")];

test("two runs are chosen, a second click takes one away, and a third run replaces the second", () => {
  expect(choose([], a)).toEqual([a]);
  expect(choose([a], b)).toEqual([a, b]);
  expect(choose([a, b], { ...a })).toEqual([b]);
  expect(choose([a, b], c)).toEqual([a, c]);
});

test("the older run is at the left, whichever was chosen first", () => {
  const [older, newer] = [run("older", 1), run("newer", 2)];
  expect(comparisonOf(newer, older)).toBe("/ui/compare?a=older&b=newer");
  expect(comparisonOf(older, newer)).toBe("/ui/compare?a=older&b=newer");
});

test("a chosen run is named", () => {
  expect(nameOf(run("a"))).toBe('x = "a"');
  expect(nameOf({ ...a, title: "Orders of May" })).toBe("Orders of May");
  expect(nameOf({ execution_id: "0123456789abcdef", created_at: a.created_at })).toBe("01234567");
});
