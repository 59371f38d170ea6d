import { expect, test } from "vitest";
import { ago, titleOf } from "../format";
import { isCodeTitle, parseChoice } from "./executions_columns";

test("a stored choice of columns has only columns that there are", () => {
  expect(parseChoice("user,gone,code")).toEqual(["user", "code"]);
  expect(parseChoice("gone")).toEqual(parseChoice(null));
  expect(parseChoice(null)).not.toContain("session");
});

test("a run is called by its title, its first comment or its first line", () => {
  expect(titleOf({ title: "Orders of May", code: "1" })).toBe("Orders of May");
  expect(titleOf({ code: "import os\n# How many orders?\nx = 1" })).toBe("How many orders?");
  expect(titleOf({ code: "import os\ntotal = 1 # not this" })).toBe("total = 1 # not this");
  expect(titleOf({ code: "-- open orders\nSELECT 1" })).toBe("open orders");
  expect(titleOf({})).toBe("");
});

test("only a line of the code is shown as code", () => {
  expect(isCodeTitle({ code: "import os\n  total = 1" })).toBe(true);
  expect(isCodeTitle({ code: "# How many orders?\nx = 1" })).toBe(false);
  expect(isCodeTitle({ title: "x = 1", code: "x = 1" })).toBe(false);
  expect(isCodeTitle({ code: "" })).toBe(false);
});

test("times are relative, and old ones are days", () => {
  const now = Date.parse("2026-03-10T12:00:00Z");
  const before = (seconds: number) => ago(new Date(now - seconds * 1000).toISOString(), now);
  expect([1, 30, 90, 7200, 90_000, 5 * 86_400].map(before)).toEqual([
    "now",
    "30 s ago",
    "1 min ago",
    "2 h ago",
    "yesterday",
    "5 days ago",
  ]);
  expect(before(40 * 86_400)).toBe("2026-01-29");
});
