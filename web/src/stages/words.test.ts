import { expect, test } from "vitest";
import { Problem } from "../api/problem";
import type { Stage, WhyNot } from "./answer";
import { describe as described, missing, plainText, refusalOf, rowsOf, uncounted } from "./words";

const stage = (of: Partial<Stage>): Stage => ({
  id: 0,
  block: 0,
  kind: "where",
  text: "",
  from_line: 1,
  to_line: 1,
  reads: -1,
  state: "counted",
  ...of,
});

test("a number that is not known is never 0, and the reason is in words", () => {
  for (const [of, rows, why] of [
    [{ rows_out: 0 }, "0", ""],
    [{ state: "estimated", estimated_out: 12000 }, "about 12K", "The planner's estimate"],
    [{ state: "skipped", reason: "over-budget" }, "not counted", "it would take too long"],
    [{ state: "refused", reason: "masked-column" }, "not counted", "it needs a masked column"],
    [
      { state: "refused", reason: "constructor", message: "words of the service" },
      "not counted",
      "words of the service",
    ],
    [{ state: "failed", message: "division by zero" }, "not counted", "The count failed: division by zero."],
  ] as [Partial<Stage>, string, string][]) {
    expect(rowsOf(stage(of))).toBe(rows);
    expect(uncounted(stage(of))).toContain(why);
  }
});

test("a refused statement is said in words, and asked again only if that may help", () => {
  const refused = (reason: string) => refusalOf(new Problem(422, "query refused", "detail", 0, reason));
  expect(refused("masked-column")).toEqual({
    title: "Not counted: it needs a masked column",
    detail: "detail",
    isFinal: true,
  });
  expect(refused("timeout").isFinal).toBe(false);
  expect(refused("unknown-column").title).toBe("The database does not answer this");
  expect(refusalOf(new Problem(0, "The service cannot be reached", ""))).toMatchObject({ isFinal: false });
});

test("what a stage does is said with its numbers", () => {
  const join = stage({
    kind: "join",
    join: "inner",
    name: "i",
    rows_in: 5000,
    rows_right: 10081,
    rows_out: 10080,
    multiplied: { pairs: 10080, left_unmatched: 1, right_unmatched: 0, max_right: 3, null_keys: 1 },
  });
  expect(described(join, stage({ kind: "from", text: "order_items i" })).join(" ")).toBe(
    "Joins 5,000 rows with 10,081 of order_items i: 10,080 rows. 5,081 are repeated: a row has up to 3 partners. " +
      "1 of the rows before it matches nothing and is left out. 1 key is NULL, which matches nothing.",
  );
  expect(described(stage({ rows_in: 10, rows_out: 1, lost: 9, null: 4 }))).toEqual([
    "1 of 10 rows passes.",
    "9 do not; for 4 of them the condition is NULL.",
  ]);
  expect(described(stage({ state: "skipped" }))).toEqual([]);
});

test("a missing row has the line that loses it, and why", () => {
  const lost = { id: 5, kind: "where" as const, text: "x", from_line: 5, state: "counted" as const };
  const of = (more: Partial<WhyNot>): WhyNot => ({
    columns: [{ name: "orders.id", meaning: "o.id", value: "1" }],
    stages: [],
    not_looked: [],
    ...more,
  });
  expect(missing(of({ missing: true, lost, because: "null" }))).toBe(
    "A row with o.id = 1 is not in the result. Line 5 loses it: the condition is NULL there, which counts as false: " +
      "a column in it is NULL.",
  );
  expect(missing(of({ missing: false }))).toBe("A row with o.id = 1 is in the result.");
  expect(missing(of({}))).toBe("A row with o.id = 1 could not be followed to the result.");
});

test("lines are written out, and names that look like lines stay", () => {
  expect(plainText("by JOIN l1 ON f(l2) = 1 (l4).")).toBe("by JOIN l1 ON f(l2) = 1 (line 4).");
});

test("parts of a stage are told from what changes its rows", () => {
  const window = { partitions: 300, largest: 28, tied: 4757 };
  expect(rowsOf(stage({ kind: "window", rows_out: 4895, window }))).toBe("300 partitions");
  expect(described(stage({ kind: "window", rows_out: 4895, window })).join(" ")).toBe(
    "300 partitions, the largest with 28 rows. 4,757 are equal to others in its order: their values depend on chance.",
  );
  expect(described(stage({ kind: "filter", rows_in: 290, rows_out: 137, empty_groups: 1 })).join(" ")).toBe(
    "137 of 290 rows pass the FILTER, which changes the aggregate only. In 1 group none does.",
  );
});
