import { expect, test } from "vitest";
import { columnsBeside } from "./layout";

test("columns of labels are not counted, unless a table has no others", () => {
  expect([columnsBeside(1, 3), columnsBeside(0, 3), columnsBeside(3, 3)]).toEqual([2, 3, 3]);
});
