import { expect, test } from "vitest";
import { rowsOf } from "./cell_origin";

const step = { line: 1, code: "", what: "", cells: [], total_cells: 0, times: 1 };

test("the rows of a step are the first ones, with the total and the rows of the table", () => {
  expect(rowsOf({ ...step, rows: [0, 3], total_rows: 2, of: 6 })).toBe("2 of 6 rows: 0, 3");
  const many = Array.from({ length: 20 }, (_, n) => n);
  expect(rowsOf({ ...step, rows: many, total_rows: 40, of: 0 })).toBe("40 rows: 0, 1, 2, 3, 4, 5, 6, 7, …");
});
