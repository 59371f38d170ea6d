import { expect, test } from "vitest";
import * as format from "./format";

test("numbers have separators, and nouns their number", () => {
  expect(format.count(1234567)).toBe("1,234,567");
  expect(format.plural(1, "row")).toBe("1 row");
  expect(format.plural(0, "row")).toBe("0 rows");
  expect(format.plural(5000, "query", "queries")).toBe("5,000 queries");
});

test.each([
  [-3, "0 ms"],
  [0.25, "0.25 ms"],
  [12.34, "12.3 ms"],
  [640, "640 ms"],
  [999.4, "999 ms"],
  [999.6, "1.00 s"],
  [1500, "1.50 s"],
  [59_900, "59.9 s"],
  [59_999, "1 min 0 s"],
  [90_000, "1 min 30 s"],
  [119_700, "2 min 0 s"],
  [3_599_800, "1 h 0 min"],
  [3_660_000, "1 h 1 min"],
  [90_000_000, "25 h 0 min"],
])("%d milliseconds are %s", (ms, text) => {
  expect(format.duration(ms)).toBe(text);
});

test("long times are days", () => {
  expect(format.days(3600)).toBe("1 h 0 min");
  expect(format.days(86_400)).toBe("1 day");
  expect(format.days(10 * 86_400)).toBe("10 days");
  expect(format.days(129_600)).toBe("1.5 days");
});

test("sizes have the unit in which they are short", () => {
  expect(format.bytes(0)).toBe("0 B");
  expect(format.bytes(1023)).toBe("1023 B");
  expect(format.bytes(1024)).toBe("1.00 KB");
  expect(format.bytes(150 * 1024)).toBe("150 KB");
  expect(format.bytes(5.5 * 1024 ** 2)).toBe("5.50 MB");
  expect(format.bytes(3 * 1024 ** 3)).toBe("3.00 GB");
  expect(format.megabytes(512)).toBe("512 MB");
  expect(format.megabytes(1536)).toBe("1.50 GB");
});

test("times are in the zone of the browser, in winter and in summer", () => {
  expect(format.fullTime("2026-01-05T23:30:01.5Z")).toBe("2026-01-06 00:30:01.500 UTC+01:00");
  expect(format.fullTime("2026-07-05T23:30:01.007Z")).toBe("2026-07-06 01:30:01.007 UTC+02:00");
  expect(format.dateTime("2026-07-05T03:04:05.999Z")).toBe("2026-07-05 05:04:05");
  expect(format.zone({ getTimezoneOffset: () => 210 } as Date)).toBe("UTC−03:30");
  expect(format.zone({ getTimezoneOffset: () => 0 } as Date)).toBe("UTC");
});

test("milliseconds of a time keep the microseconds", () => {
  const whole = Date.UTC(2026, 0, 5);
  expect(format.milliseconds("2026-01-05T00:00:00Z")).toBe(whole);
  expect(format.milliseconds("2026-01-05T00:00:00.25Z")).toBe(whole + 250);
  expect(format.milliseconds("2026-01-05T00:00:00.123456Z")).toBeCloseTo(whole + 123.456, 3);
});

test.each([
  ["# Report of May\nimport os\nx = 1", "# Report of May"],
  ["#!/usr/bin/env python\n# %%\nimport os\nfrom a import b\n\n  total = 5", "total = 5"],
  ["import os", "import os"],
  ["()\n", "()"],
  ["", ""],
])("the first line of %j that says something is %j", (code, line) => {
  expect(format.firstLine(code)).toBe(line);
});

test("a statement loses the indentation that all its lines have", () => {
  expect(format.statementText("\n    SELECT 1\n      FROM t\n\n    WHERE x\n  ")).toBe("SELECT 1\n  FROM t\n\nWHERE x");
  expect(format.statementText("SELECT 1\n    FROM t")).toBe("SELECT 1\n    FROM t");
  expect(format.statementText("")).toBe("");
});

test("a captured statement has changed no rows", () => {
  expect(format.changedRows({ status: "captured", rows: 12 })).toBe("–");
  expect(format.changedRows({ status: "ok", rows: 1200 })).toBe("1,200");
});

test("a hint that the message contains is not shown again", () => {
  expect(format.hasHint("No column x. Did you mean y?", "did you mean y")).toBe(true);
  expect(format.hasHint("No column x", "No column X. ")).toBe(true);
  expect(format.hasHint("No column x", "Did you mean y?")).toBe(false);
});

test("names that every object has are in no record", () => {
  const record: Record<string, number> = { a: 1 };
  expect(format.own(record, "a")).toBe(1);
  expect(format.own(record, "constructor")).toBeUndefined();
  expect(format.own(record, "__proto__")).toBeUndefined();
});

test("values and identifiers are short and readable", () => {
  expect(format.asText("text")).toBe("text");
  expect(format.asText({ a: [1] })).toBe('{\n  "a": [\n    1\n  ]\n}');
  expect(format.shortID("0123456789abcdef")).toBe("01234567");
  expect(format.shortID("e-12")).toBe("e-12");
});

test("a run whose first line says little is called by its tables, or by the first line that says more", () => {
  const titles: [code: string, title: string][] = [
    ['sql = """\nSELECT * FROM orders o JOIN sales.items i USING (id)', "Reads orders, sales.items"],
    ["x = 1\nd = {}\nprint(x + 1)", "print(x + 1)"],
    ["rate = 1.05\nfrom decimal import Decimal\ntotal = Decimal(rate)", "total = Decimal(rate)"],
    ["import pandas as pd", "import pandas as pd"],
    ["# Orders of May\nx = 1", "Orders of May"],
    ["rows = await db_query('SELECT 1 FROM orders')", "rows = await db_query('SELECT 1 FROM orders')"],
  ];
  for (const [code, title] of titles) expect(format.titleOf({ code })).toBe(title);
  expect(format.titleOf({ code: "x = 1", title: "Mine" })).toBe("Mine");
});
