import { expect, test } from "vitest";
import { change, diffLines, diffTables, folded } from "./diff";

const shown = (left: string, right: string) =>
  diffLines(left, right).map(({ kind, left: a, right: b }) => `${kind} ${a ?? "-"} ${b ?? "-"}`);

test("equal lines are pairs, and a changed line stands next to the other one", () => {
  expect(shown("a\nb\nc\n", "a\nx\nc\n")).toEqual(["same a a", "changed b x", "same c c"]);
  expect(shown("a\nc", "a\nb\nc")).toEqual(["same a a", "added - b", "same c c"]);
  expect(shown("a\nb\nc\nd", "b\nd\ne")).toEqual(["removed a -", "same b b", "removed c -", "same d d", "added - e"]);
  expect(shown("", "a")).toEqual(["added - a"]);
  expect(shown("a", "a")).toEqual(["same a a"]);
  expect(diffLines("a\nb", "b").map((l) => [l.leftNumber, l.rightNumber])).toEqual([
    [1, 0],
    [2, 1],
  ]);
});

test("equal lines far from a difference are hidden", () => {
  const many = Array.from({ length: 20 }, (_, n) => `line ${n}`);
  const parts = folded(diffLines(many.join("\n"), many.with(10, "other").join("\n")));
  expect(parts.map((part) => (Array.isArray(part) ? part.length : -part.hidden.length))).toEqual([-7, 7, -6]);
  expect(folded(diffLines("a\nb\nc", "a\nb\nc"))).toHaveLength(1);
});

test("tables are compared by cell, in what both have", () => {
  const diff = diffTables(
    [
      { city: "Oslo", total: 1, old: 1 },
      { city: "Lyon", total: 2, old: 1 },
    ],
    [{ city: "Oslo", total: 3, new: null }],
  );
  expect(diff).toEqual({
    cells: [{ row: 0, column: "total", left: 1, right: 3 }],
    total: 1,
    compared: 2,
    onlyLeft: ["old"],
    onlyRight: ["new"],
    label: "city",
  });
});

test("a change is said in words that one understands", () => {
  expect([change(1, 1), change(0, 5), change(100, 120), change(100, 60), change(10, 25), change(1000, 1001)]).toEqual([
    "the same",
    "",
    "+20 %",
    "−40 %",
    "2.5 times as much",
    "about the same",
  ]);
});
