// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { StepFrame, StepVariable } from "../api/records";
import { namesOf } from "../parts/python_names";
import type { StepLines } from "./steps_lines";
import { valuesByLine } from "./steps_values";

const code = `total = 0
def add(n, by=1):
    more = n + by
    return more
for i, part in pairs:
    total += add(i)
spent["a"] = total
a = b = 3
with open("x") as file:
    print(f"{total}",
          file)
`;

test("the lines that set variables are known, with their function, and those that print", () => {
  const { assignments, prints } = namesOf(code);
  expect(assignments.map(({ line, name, scope }) => `${line} ${scope} ${name}`)).toEqual([
    "1 <module> total",
    "2 add n",
    "2 add by",
    "3 add more",
    "5 <module> i",
    "5 <module> part",
    "6 <module> total",
    "7 <module> spent",
    "8 <module> a",
    "8 <module> b",
    "9 <module> file",
  ]);
  expect(prints).toEqual([10]);
});

const variable = (name: string, value: string): StepVariable => ({ name, value, type: "int" });
const frame = (name: string, ...variables: StepVariable[]) => ({ function: name, variables }) as unknown as StepFrame;
const linesOf = (ran: number[]) =>
  ({
    runsOf: (line: number) => Uint32Array.from(ran.flatMap((each, at) => (each === line ? [at] : []))),
  }) as unknown as StepLines;

test("a value is behind the line that set it last, before the position", () => {
  const { assignments } = namesOf(code);
  const lines = linesOf([1, 2, 5, 6, 3, 4, 5, 6]);
  const globals = [variable("total", "5"), variable("i", "1")];
  const at = (position: number, frames: StepFrame[] = []) =>
    Object.fromEntries(valuesByLine(assignments, lines, position, frames, globals));
  expect(at(1)).toEqual({ 1: "total = 5" });
  expect(at(4)).toEqual({ 5: "i = 1", 6: "total = 5" });
  const inner = frame("add", variable("n", "4"), variable("by", "1"));
  expect(at(4, [inner])).toMatchObject({ 2: "n = 4, by = 1" });
  expect(at(4, [inner, inner])[2]).toBeUndefined(); // which of the calls is not known
});
