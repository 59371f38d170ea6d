import { expect, test } from "vitest";
import { Problem } from "../api/problem";
import type { Cell, Column } from "./cell";
import { FirstRowsSource, LocalSource, type Source, statsOf } from "./source";
import { everything, filterOf, queryOf, type View } from "./view";

const columns: Column[] = [
  { name: "n", type: "int64", kind: "number" },
  { name: "t", type: "text", kind: "text" },
];
const rows: Cell[][] = [
  [10, "ten"],
  [9, "nine"],
  ["100.5", null],
  [null, ""],
  [{ nan: "nan" }, "NULL"],
];
const source = new LocalSource(columns, rows);
const view = (change: Partial<View>): View => ({ ...everything, ...change });
const found = (filter: string, column = 0) =>
  source.rows(view({ filters: [filterOf(column, filter)!] }), 0, 10).numbers;

test("a condition is a text that the values contain, a comparison, or null", () => {
  expect(found("> 9.5")).toEqual([0, 2]);
  expect(found("<=10")).toEqual([0, 1]);
  expect(found("!= 9")).toEqual([0, 2, 4]);
  expect(found("=100.50")).toEqual([2]);
  expect(found("null")).toEqual([3]);
  expect(found("!null")).toEqual([0, 1, 2, 4]);
  expect(found("N", 1)).toEqual([0, 1, 4]);
  expect(found("null", 1)).toEqual([2]);
  expect(found('=""', 1)).toEqual([3]);
  expect(found("=NULL", 1)).toEqual([4]);
  expect(filterOf(0, "  ")).toBeUndefined();
});

test("numbers are sorted as numbers, and NaN and NULL are last in both orders", () => {
  const sorted = (descending: boolean) => source.rows(view({ sort: { column: 0, descending } }), 0, 10).numbers;
  expect(sorted(false)).toEqual([1, 0, 2, 4, 3]);
  expect(sorted(true)).toEqual([2, 0, 1, 4, 3]);
});

test("the API gets the view", () => {
  const asked = view({ sort: { column: 2, descending: true }, filters: [filterOf(1, ">= a:b")!, filterOf(0, "x")!] });
  expect(queryOf(asked)).toEqual({ sort: "-2", filter: ["1:ge:a:b", "0:contains:x"] });
});

test("statistics count what is missing, and compute with the rest", () => {
  const stats = statsOf([1, 2, 2, "4.5", null, { nan: "nan" }], "number");
  expect(stats).toMatchObject({
    count: 6,
    missing: 1,
    nan: 1,
    min: 1,
    max: "4.5",
    sum: 9.5,
    median: 2,
    distinct: 3 + 0,
  });
  expect(stats.top?.[0]).toEqual({ value: "2", count: 2 });
  expect(statsOf(["", "a", null], "text")).toMatchObject({ missing: 1, empty: 1, min: "", max: "a" });
});

test("the first rows stay when the session no longer has the table, with the reason", async () => {
  const gone = {
    rows: () => Promise.reject(new Problem(410, "Gone", "it has ended")),
  };
  const both = new FirstRowsSource(gone as unknown as Source, source);
  expect((await both.rows(everything, 0, 2)).rows).toEqual(rows.slice(0, 2));
  expect(both.reason?.detail).toBe("it has ended");
});
