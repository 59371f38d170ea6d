// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Execution } from "../api/records";
import { mustScroll, namedAt, questionOf } from "./execution_answer";

const frame = {
  line: 3,
  function: "share",
  code: 'return rows["total"] / total',
  variables: { rows: `{'a': ${"0".repeat(30)}}`, total: "0", other: "1" },
};
const failed = {
  status: "failed",
  exception: { traceback: [{ ...frame, code: "share(rows)" }, frame, { ...frame, file: "pandas/core.py" }] },
} as unknown as Execution;

test("a failure asks for the variables that its line names, and not for texts in it", () => {
  expect(namedAt(failed)).toEqual(["rows", "total"]);
  expect(namedAt({ status: "failed" } as Execution)).toEqual([]);
});

test("a question has the value, if that is short", () => {
  expect(questionOf("total", failed)).toBe("Why is “total” 0?");
  expect(questionOf("rows", failed)).toBe("Why has “rows” this value?");
  expect(questionOf("result", failed)).toBe("Why this result?");
});

test("an answer is scrolled to unless it begins in the upper part of the window", () => {
  expect([mustScroll(-10, 900), mustScroll(20, 900), mustScroll(300, 900), mustScroll(600, 900)]).toEqual([
    true,
    false,
    false,
    true,
  ]);
});
