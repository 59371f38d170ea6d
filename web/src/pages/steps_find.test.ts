import { expect, test } from "vitest";
import { json, serve } from "../testing/service";
import { missing, search } from "./steps_find";

test("a name that does not exist is said, with the one that was meant", () => {
  expect(missing({ step: 0, unknown: 9, unknown_names: [{ name: "totl", nearest: "total" }] })).toBe(
    "There is no variable totl. Did you mean total?",
  );
  expect(missing({ step: 0, unknown: 0 })).toBe("It does not hold at any step.");
});

test("a condition that holds only before is found there, and does not move the person", async () => {
  const calls = serve(({ query }) => json({ step: query.has("before") ? 3 : 0, unknown: 0 }));
  expect(await search("/executions/e", "n > 1", 7, "next")).toEqual({
    step: 3,
    isOther: true,
    said: "It holds at no later step, but at step ",
  });
  expect(calls.map(({ query }) => query.get("from") ?? `before ${query.get("before")}`)).toEqual(["8", "before 7"]);
});

test("a misspelt name is not searched twice", async () => {
  const calls = serve(() => json({ step: 0, unknown: 5, unknown_names: [{ name: "x" }] }));
  expect((await search("/e", "x", 1, "next")).said).toBe("There is no variable x.");
  expect(calls).toHaveLength(1);
});
