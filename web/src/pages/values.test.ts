// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { Key } from "../api/records";
import { checkSize, type UploadedFile, uploadPath } from "../api/upload";
import { isTable } from "../parts/value";
import { rowsOf } from "./chat_run";
import { stateOf } from "./keys";
import { readerOf } from "./play_files";
import { parseContext } from "./play_program";

test("a context is a JSON object, or nothing", () => {
  expect(parseContext(" \n")).toBeUndefined();
  expect(parseContext('{"limit": 5}')).toEqual({ limit: 5 });
  for (const text of ["[1]", "null", "5", '"text"']) expect(() => parseContext(text)).toThrow("expected an object");
  expect(() => parseContext("{limit: 5}")).toThrow(SyntaxError);
});

test("the rows of a query are a table, also with odd names of columns", () => {
  const found = rowsOf('columns: ["id","__proto__"]\n[1,"a"]\n[2,null]\n2 rows');
  expect(found?.columns).toEqual(["id", "__proto__"]);
  expect(found?.rows.map((row) => row["id"])).toEqual([1, 2]);
  expect(found?.rows.map((row) => Object.hasOwn(row, "__proto__"))).toEqual([true, true]);
  expect(found?.rest).toBe("2 rows");
});

test("another answer of the tool is not a table", () => {
  expect(rowsOf("ERROR: no such column")).toBeUndefined();
  expect(rowsOf("columns: [broken")).toBeUndefined();
  expect(rowsOf("")).toBeUndefined();
});

test("a list of records is a table if they are flat, or alike", () => {
  expect(isTable([{ a: 1 }, { b: "x" }])).toBe(true);
  expect(
    isTable([
      { id: 1, data: { x: 1 } },
      { id: 2, data: null },
    ]),
  ).toBe(true);
  expect(isTable([{ id: 1, data: { x: 1 } }, { other: 2 }])).toBe(false);
  for (const value of [[], [{}], [1, 2], [[1]], [null], { a: 1 }, "text", null]) expect(isTable(value)).toBe(false);
});

test("code that reads a file fits its kind", () => {
  const file = (path: string, mime_type = "application/octet-stream"): UploadedFile => ({ path, size: 1, mime_type });
  expect(readerOf(file("a/Sales.CSV"))).toContain('pd.read_csv("/data/a/Sales.CSV")');
  expect(readerOf(file("x.parquet"))).toContain("pd.read_parquet");
  expect(readerOf(file("notes", "text/plain"))).toContain('open("/data/notes").read()');
  expect(readerOf(file("x.constructor"))).toContain('"rb"');
  expect(readerOf(file('a"b.json'))).toContain('open("/data/a\\"b.json")');
});

test("an upload keeps its folders, and nothing of its name leaves the path", () => {
  expect(uploadPath("s/1", "folder/a b?.csv")).toBe("/sandbox/s%2F1/files/folder/a%20b%3F.csv");
});

test("a file that is too large is refused before it is sent", () => {
  const file = { name: "big.csv", size: 11 * 1024 ** 2 } as File;
  expect(() => checkSize(file, 10 * 1024 ** 2)).toThrow(
    "big.csv has 11.0 MB; the uploads of a session may have 10.0 MB",
  );
  expect(() => checkSize(file, file.size)).not.toThrow();
});

test("a key is revoked, expired or active", () => {
  const key = (changes: Partial<Key>) => ({ revoked_at: null, expires_at: null, ...changes }) as Key;
  const before = new Date(Date.now() - 1000).toISOString();
  const later = new Date(Date.now() + 60_000).toISOString();
  expect(stateOf(key({}))).toBe("active");
  expect(stateOf(key({ expires_at: later }))).toBe("active");
  expect(stateOf(key({ expires_at: before }))).toBe("expired");
  expect(stateOf(key({ expires_at: later, revoked_at: before }))).toBe("revoked");
});
