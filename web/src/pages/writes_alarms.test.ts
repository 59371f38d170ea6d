import { expect, test } from "vitest";
import type { PendingWrite } from "../api/records";
import { alarmTexts } from "./writes_alarms";
import { merged } from "./writes_list";

test("a write without a condition and a large one are told, the exact number first", () => {
  expect(alarmTexts({ row_estimate: 3 })).toEqual([]);
  expect(alarmTexts({ row_estimate: 500, alarms: ["no-condition"] })).toEqual([
    "No WHERE: it changes every row of the table.",
  ]);
  expect(alarmTexts({ row_estimate: 5000, alarms: ["many-rows"] })).toEqual(["It changes many rows: about 5,000."]);
  expect(alarmTexts({ row_estimate: 5000, alarms: ["many-rows"] }, 12)).toEqual([]); // the estimate was wrong
  expect(alarmTexts({ row_estimate: 1 }, 1000)).toEqual(["It changes 1,000 rows."]);
});

test("new writes are behind the others, and decisions are taken up", () => {
  const write = (id: string, status: PendingWrite["status"] = "pending") => ({ id, status }) as PendingWrite;
  const rows = [write("b"), write("a")];
  expect(merged(rows, [write("b"), write("a")])).toBe(rows);
  expect(merged(rows, [write("d"), write("c"), write("b", "applied")]).map(({ id, status }) => id + status)).toEqual([
    "bapplied",
    "apending",
    "cpending",
    "dpending",
  ]);
});
