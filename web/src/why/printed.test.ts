import { expect, test } from "vitest";
import { printedNames } from "./printed";

test("the variables that a program prints are those of its last lines first", () => {
  expect(printedNames('total = 1.234\nprint("total", round(total, 2))\n')).toEqual(["total"]);
  expect(printedNames("a = 1\nb = 2\nprint(a)\nprint(b, a)")).toEqual(["b", "a"]);
  expect(printedNames("for city, n in rows.items():\n    print(city, n, sep=' total ')")).toEqual(["city", "n"]);
});

test("texts have no variables, but formatted texts do", () => {
  expect(printedNames("total = 1\nmean = 2\nprint(f'total: {mean:.2f}', 'total')")).toEqual(["mean"]);
  expect(printedNames("total = 1\nprint('done') # total")).toEqual([]);
});

test("names that the program does not set, attributes and names of arguments are left out", () => {
  expect(printedNames("t = frame()\nprint(len(t.total), t)")).toEqual(["t"]);
  expect(printedNames("def f():\n    inner = 1\n    print(inner)\nf()\nend = 1\nprint(1, end='')")).toEqual([]);
  expect(printedNames("")).toEqual([]);
});
