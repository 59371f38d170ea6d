import { expect, test } from "vitest";
import type { Block, Finding, Stage, Stages } from "./answer";
import { barOf, columnsOf, firstEmpty, linesOf, mostRows, repeatedOf } from "./lines";

const stage = (of: Partial<Stage> & Pick<Stage, "id" | "kind">): Stage => ({
  block: 0,
  text: "",
  from_line: 1,
  to_line: of.from_line ?? 1,
  reads: -1,
  state: "counted",
  ...of,
});

const answer = (blocks: Stage[][], findings: Partial<Finding>[] = []): Stages => ({
  lines: 1,
  rows: 0,
  truncated: false,
  ms: 1,
  total_ms: 2,
  statements: 3,
  blocks: blocks.map((stages, id): Block => ({ id, kind: "main", from_line: 1, to_line: 9, stages })),
  findings: findings.map((f) => ({ kind: "fan-out", score: 92, line: 1, stage: -1, clause: "", text: "", ...f })),
  not_looked: [],
});

const join = stage({
  id: 2,
  kind: "join",
  join: "inner",
  name: "o",
  from_line: 3,
  rows_in: 300,
  rows_right: 5000,
  rows_out: 5000,
  lost: 10,
  multiplied: { pairs: 5000, left_unmatched: 10 },
});

test("a line has the steps that begin in it, and a join has its table", () => {
  const sql = "SELECT *\nFROM customers c\nJOIN orders o ON o.customer_id = c.id";
  const orders = stage({ id: 1, kind: "from", name: "o", from_line: 3, rows_out: 5000 });
  const lines = linesOf(sql, answer([[stage({ id: 0, kind: "from", name: "c", from_line: 2 }), orders, join]]));
  expect(lines.map(({ number, steps }) => [number, steps.map((s) => s.stage.id)])).toEqual([
    [1, []],
    [2, [0]],
    [3, [2]],
  ]);
  expect(lines[2]!.steps[0]!.right).toBe(orders);
});

test("lines keep their numbers without the empty ones and the indentation around them", () => {
  const lines = linesOf("\n    SELECT 1\n      FROM a\n    ", undefined);
  expect(lines.map(({ number, text }) => [number, text])).toEqual([
    [2, "SELECT 1"],
    [3, "  FROM a"],
  ]);
});

test("the rows of a subquery are shown where it ends", () => {
  const inner = stage({ id: 0, kind: "from", block: 0, from_line: 2 });
  const outer = stage({ id: 1, kind: "from", block: 1, from_line: 1, to_line: 3, name: "s", reads: 0 });
  const lines = linesOf("SELECT * FROM (\nSELECT * FROM a\n) s", answer([[inner], [outer]]));
  expect(lines.map(({ steps }) => steps.map((s) => s.stage.id))).toEqual([[], [0], [1]]);
});

test("a finding is in the line of its stage, or in its own", () => {
  const sql = "SELECT n / 2\nFROM c\nJOIN o USING (id)";
  const right = stage({ id: 1, kind: "from", name: "o", from_line: 3 });
  const of = answer(
    [[stage({ id: 0, kind: "from", from_line: 2 }), right, join]],
    [
      { stage: 1, line: 2 },
      { stage: -1, line: 1 },
    ],
  );
  expect(linesOf(sql, of).map(({ findings }) => findings.map((f) => f.stage))).toEqual([[-1], [], [1]]);
});

test("repeated rows are the copies of rows that a join kept", () => {
  expect(repeatedOf(join)).toBe(4710);
  const right = { ...join, join: "right" as const, multiplied: { pairs: 5000, right_unmatched: 0 } };
  expect(repeatedOf(right)).toBe(0);
  expect(repeatedOf({ ...join, multiplied: {} })).toBe(4700); // at least
  expect(repeatedOf({ ...join, rows_out: 200, multiplied: {} })).toBeUndefined(); // not known
  expect(repeatedOf(stage({ id: 0, kind: "where", rows_in: 1, rows_out: 9 }))).toBeUndefined();
});

test("a bar has the rows that are kept, repeated and lost", () => {
  const most = mostRows(answer([[join]]));
  expect(most).toBe(5010);
  expect(barOf(join, most)).toEqual({ kept: 290 / 5010, repeated: 4710 / 5010, lost: 10 / 5010 });
  const unknown = stage({ id: 0, kind: "where", state: "refused", reason: "masked-column" });
  expect(barOf(unknown, most)).toBeUndefined(); // never a bar for 0
  expect(barOf(stage({ id: 0, kind: "from", state: "estimated", estimated_out: 2505 }), most)?.kept).toBe(0.5);
});

test("the first stage without rows is not a stage whose rows are not known", () => {
  const stages = [
    stage({ id: 0, kind: "from", rows_out: 5 }),
    stage({ id: 1, kind: "where", state: "skipped" }),
    stage({ id: 2, kind: "where", rows_out: 0 }),
  ];
  expect(firstEmpty(answer([stages]))).toEqual({ stage: stages[2], isFirst: false });
  expect(firstEmpty(answer([[stages[0]!, stages[2]!]]))).toEqual({ stage: stages[2], isFirst: true });
});

test("the columns that a question can name are those of tables", () => {
  const sample = { columns: ["id", "city"], rows: [] };
  const stages = [
    stage({ id: 0, kind: "from", name: "c", sample }),
    stage({ id: 1, kind: "from", name: "w", reads: 1, sample }),
  ];
  expect(columnsOf(answer([stages]))).toEqual(["c.id", "c.city"]);
});

test("a part of a stage loses no rows, and is not the reason for an empty result", () => {
  const filter = stage({ id: 1, kind: "filter", part_of: 0, rows_in: 9, rows_out: 0, lost: 9 });
  expect(barOf(filter, 9)).toEqual({ kept: 0, repeated: 0, lost: 0 });
  const exists = stage({ id: 2, kind: "subquery", block: 1, rows_in: 9, rows_out: 0, lost: 9 });
  const inner = stage({ id: 3, kind: "from", block: 2, rows_out: 0 }); // of NOT IN
  const where = stage({ id: 4, kind: "where", rows_in: 9, rows_out: 0, lost: 9 });
  const of = answer([[filter, where], [exists], [inner]]);
  of.blocks[1]!.kind = "correlated";
  of.blocks[2]!.kind = "subquery";
  of.blocks.reverse(); // as the service sends them
  expect(firstEmpty(of)?.stage).toBe(where);
});
