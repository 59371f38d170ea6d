import { expect, test } from "vitest";
import { lineAddress } from "./line_address";

const queryOf = (address: string) => Object.fromEntries(new URL(address, "http://x").searchParams);

test("the link of a line leads behind its step, with the question", () => {
  const address = lineAddress("e 1", "t.iloc[2, 1]", { line: 4, step: 7 }, "end");
  expect(address).toMatch(/^\/ui\/executions\/e%201\/steps\?/);
  expect(queryOf(address)).toEqual({ name: "t.iloc[2, 1]", step: "8", after: "7", line: "4", asked: "end" });
});

test("a line without a step leads behind its last run", () => {
  expect(queryOf(lineAddress("e", "n", { line: 4, step: 0 }, "9"))).toEqual({
    name: "n",
    after: "last",
    line: "4",
    asked: "9",
  });
});
