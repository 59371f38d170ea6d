import { expect, test } from "vitest";
import { recordedCell, sourceOfTable } from "./recorded";
import { everything } from "./view";

test("a recording's cells are values again", () => {
  expect(
    ["None", "'None'", "''", "nan", "True", "12.50", "'it'", "<NA>", "Timestamp('2026')"].map(recordedCell),
  ).toEqual([null, "None", "", { nan: "nan" }, true, "12.50", "it", null, "Timestamp('2026')"]);
});

test("a recorded table has its labels, and numbers are numbers", () => {
  const source = sourceOfTable({
    columns: [
      { name: "n", dtype: "int64", missing: 0 },
      { name: "t", dtype: "str", missing: 1 },
    ],
    rows: [
      { label: "0", cells: ["10", "'a'"] },
      { label: "1", cells: ["9", "nan"] },
    ],
    total_columns: 40,
  });
  const page = source.rows({ ...everything, sort: { column: 1, descending: false } }, 0, 10);
  expect(page.rows[0]).toEqual(["1", "9", { nan: "nan" }]);
  expect(page.columns.map(({ name, kind }) => [name, kind])).toEqual([
    ["index", "number"],
    ["n", "number"],
    ["t", "text"],
  ]);
  expect(page.total_columns).toBe(41);
});
