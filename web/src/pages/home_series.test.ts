import { expect, test } from "vitest";
import { costs, series, whyOtherTotal } from "./home_series";

const since = Date.parse("2026-03-01T00:00:00Z");
const totals = { executions: 2, failed: 1, rows_read: 10, cpu_ms: 5 };

test("each part of the time has a bar, also without executions, and hours are summed up", () => {
  const hours = [
    { hour: "2026-03-01T00:00:00Z", ...totals },
    { hour: "2026-03-01T01:00:00Z", ...totals },
    { hour: "2026-03-01T05:00:00Z", ...totals },
  ];
  const bars = series(hours, since, since + 7.5 * 3_600_000, 2);
  expect(bars.map(({ executions }) => executions)).toEqual([4, 0, 2, 0]);
  expect(bars[0]).toMatchObject({ at: since, failed: 2, rows_read: 20, cpu_ms: 10 });
  expect(series(null, since, since, 1)).toHaveLength(1);
});

test("the keys that used most have names, and the others are one", () => {
  const keys = Array.from({ length: 7 }, (_, n) => ({
    key_id: `k${n}`,
    name: n ? `key ${n}` : "",
    user_id: "ada",
    day: n % 2 ? "2026-03-01" : "2026-03-02",
    cpu_ms: 100 - n,
  }));
  const found = costs(keys);
  expect(found.days).toEqual(["2026-03-01", "2026-03-02"]);
  expect(found.keys.map(({ name }) => name).slice(0, 2)).toEqual(["deleted key k0", "ada, “key 1”"]);
  expect(found.keys.at(-1)).toEqual({ name: "2 other keys", total: 189, days: [95, 94] });
});

test("two sums of CPU time are the same, or the page says why not", () => {
  expect(whyOtherTotal(3470, 3470.2, "2026-03-01T00:00:00Z")).toBe("");
  expect(whyOtherTotal(3470, 1200, "2026-03-01T00:00:00Z")).toMatch(
    /^The CPU time of the runs, 1\.20 s, is from 2026-/,
  );
});
