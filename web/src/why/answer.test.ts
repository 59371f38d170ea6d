import { expect, test } from "vitest";
import { cellPath, clipped, lastName, linesOf, sectionsOf } from "./answer";

const fact = { line: 6, column: 12, code: 'row["ms"]\n or 0', kind: "replaced", score: 72, text: "57 of 400 became 0" };

test("findings with numbers come first, notes come last, and the code is apart from the text", () => {
  const sections = sectionsOf({
    findings: [
      { kind: "replaced", step: 9, line_number: 6, text: 'row["ms"] or 0: 57 of 400 became 0', score: 72 },
      { kind: "order", line_number: 4, text: "the groups are in alphabetical order", score: 52 },
      { kind: "query", step: 1, line_number: 2, text: "query 1 returned 400 rows", score: 30 },
    ],
    facts: [
      fact,
      { ...fact, kind: "value", score: 25, text: "400 values: 400 int, 0 to 9" },
      { ...fact, line: 9, kind: "always", score: 35, text: "was true" },
      { ...fact, line: 9, column: 20, code: "b", kind: "value", score: 25, text: "3 values: 2 int, 1 None" },
      { ...fact, line: 8, kind: "value", score: 25, text: "3 values: 3 float" },
      { ...fact, line: 8, kind: "value", score: 25, text: "37.5 -> 37.5" },
      { ...fact, line: 7, kind: "value", score: 25, text: "6 values: 6 None" },
      { ...fact, kind: "value", score: 20, text: "too little" },
    ],
  });
  expect(sections.first).toEqual([{ line: 6, step: 9, code: 'row["ms"] or 0', text: "57 of 400 became 0" }]);
  expect(sections.intended.map(({ text }) => text)).toEqual(["query 1 returned 400 rows"]);
  expect(sections.more.map(({ text }) => text)).toEqual(["the groups are in alphabetical order"]);
  // Line 6 is left out because it stands in "Check first", and line 8 because the answer says nothing about it.
  expect(sections.facts).toEqual([
    {
      line: 9,
      parts: [
        { code: 'row["ms"] or 0', text: "was true" },
        { code: "b", text: "3 values: 2 int, 1 None" },
      ],
    },
    { line: 7, parts: [{ code: 'row["ms"] or 0', text: "6 values: 6 None" }] },
  ]);
  expect(linesOf(sections)).toEqual([6, 2]);
});

test("an answer without findings has empty sections, and of many findings the first ones are shown", () => {
  expect(sectionsOf({ findings: null })).toEqual({ first: [], intended: [], more: [], facts: [] });
  const many = Array.from({ length: 7 }, (_, n) => ({ kind: "query", text: `finding ${n}`, score: 80 - n * 5 }));
  const { first, intended, more } = sectionsOf({ findings: many });
  expect([first.length, intended.length, more.length]).toEqual([3, 1, 3]);
});

test("the last name is the variable that the last line shows, or the one that was set before it was printed", () => {
  expect(lastName("a = 1\naverage = a / 2\naverage\n")).toEqual({ name: "average", isShown: true });
  expect(lastName("answer = 1\nprint(answer)")).toEqual({ name: "answer", isShown: false });
  expect(lastName("total = 0\nfor n in range(3):\n    total += n\ntotal += 1  # more")).toEqual({
    name: "total",
    isShown: false,
  });
  expect(lastName("t = 1\nt.head()")).toEqual({ name: "", isShown: false });
  expect(lastName("if x == 1:\n    pass")).toEqual({ name: "", isShown: false });
  expect(lastName("")).toEqual({ name: "", isShown: false });
});

test("a cell of a frame is asked by its position, and one of a list by its key", () => {
  expect(cellPath("t", 2, { name: "mean", index: 1 }, true)).toBe("t.iloc[2, 1]");
  expect(cellPath("rows", 2, { name: 'a "b"', index: 1 }, false)).toBe('rows[2]["a \\"b\\""]');
});

test("a long value is clipped on one line", () => {
  expect(clipped("a\n  b", 10)).toBe("a b");
  expect(clipped("0123456789", 5)).toBe("0123…");
});
