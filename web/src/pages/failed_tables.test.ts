import { expect, test } from "vitest";
import type { Execution } from "../api/records";
import { tablesOf } from "./failed_tables";

test("the tables among the values of a failure are those of the submitted code", () => {
  const variables = { df: "<DataFrame 100x1: n int64 | 0>", text: "'<DataFrame 1x1'", s: "<Series 3: int64>", n: "1" };
  const frame = { line: 1, function: "<module>", code: "", variables };
  const failed = (traceback: unknown) => ({ exception: { traceback } }) as unknown as Execution;
  expect(
    tablesOf(failed([frame, { line: 2, function: "f", code: "", variables: { local: "<DataFrame 1x1: n>" } }])),
  ).toEqual(["df", "s"]);
  expect(tablesOf(failed([{ ...frame, file: "library.py" }]))).toEqual([]);
  expect(tablesOf(failed(null))).toEqual([]);
});
