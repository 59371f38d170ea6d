// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { tablesToChoose } from "./statements";

test("the tables to choose have the one of the address, which may be gone", () => {
  expect(tablesToChoose(["a", "b"], "")).toEqual(["a", "b"]);
  expect(tablesToChoose(["a", "b"], "b")).toEqual(["a", "b"]);
  expect(tablesToChoose(["a", "b"], "old")).toEqual(["old", "a", "b"]);
  expect(tablesToChoose([], "old")).toEqual(["old"]);
});
