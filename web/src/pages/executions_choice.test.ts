import { expect, test } from "vitest";
import { choose } from "./executions_choice";

test("two runs are chosen, a second click takes one away, and a third run replaces the second", () => {
  expect(choose([], "a")).toEqual(["a"]);
  expect(choose(["a"], "b")).toEqual(["a", "b"]);
  expect(choose(["a", "b"], "a")).toEqual(["b"]);
  expect(choose(["a", "b"], "c")).toEqual(["a", "c"]);
});
