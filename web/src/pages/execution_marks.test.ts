import { expect, test } from "vitest";
import type { Execution } from "../api/records";
import { marks } from "./execution_marks";

const failed = (exception: object | null, changes: object = {}) =>
  ({ status: "failed", error: "KeyError: 'x'", exception, ...changes }) as unknown as Execution;

test("the innermost line of the code itself is where it failed, with the calls that led there", () => {
  const traceback = [
    { line: 9, function: "", code: "outer()" },
    { line: 4, function: "outer", code: "frame['x']", variables: { n: "1" } },
    { line: 700, function: "get", code: "raise", file: "pandas/core.py" },
  ];
  expect(marks(failed({ traceback, hint: "Did you mean y?" }))).toEqual([
    { line: 9, isFailure: false },
    {
      ...{ line: 4, isFailure: true, code: "frame['x']", variables: { n: "1" } },
      ...{ message: "KeyError: 'x'", hint: "Did you mean y?" },
    },
  ]);
});

test("a recursive function has one mark at the line that failed", () => {
  const frame = { line: 2, function: "f", code: "f()" };
  const traceback = [{ ...frame, line: 5 }, frame, frame, frame];
  expect(marks(failed({ traceback })).map(({ line, isFailure }) => [line, isFailure])).toEqual([
    [5, false],
    [2, true],
  ]);
});

test("a syntax error has a line and no frames", () => {
  expect(marks(failed({ traceback: null, line: 3 }))).toMatchObject([{ line: 3, isFailure: true }]);
});

test("a cancelled run has not failed where it was", () => {
  const traceback = [{ line: 2, function: "", code: "sleep()" }];
  expect(marks(failed({ traceback }, { status: "cancelled" }))).toEqual([{ line: 2, isFailure: false }]);
});

test("a run without an exception has no marks", () => {
  expect(marks(failed(null))).toEqual([]);
});
