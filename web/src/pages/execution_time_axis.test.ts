import { expect, test } from "vitest";
import type { Execution } from "../api/records";
import { bars } from "./execution_time_axis";

const at = (ms: number) => new Date(Date.UTC(2026, 0, 1) + ms).toISOString();

function execution(changes: object = {}): Execution {
  return {
    created_at: at(0),
    completed_at: at(100),
    status: "completed",
    kind: "execute",
    usage: { queue_ms: 10, start_ms: 20, wall_ms: 60 },
    queries: [],
    connections: [],
    outputs: [],
    debug_info: { logs: [], variables: {} },
    ...changes,
  } as unknown as Execution;
}

const shown = (e: Execution, now = 0) =>
  bars(e, Date.UTC(2026, 0, 1) + now).map(({ label, begin, length }) => [label, begin, length]);

test("the parts of a run follow each other without a gap", () => {
  expect(shown(execution())).toEqual([
    ["Queue", 0, 10],
    ["Start", 10, 20],
    ["Run", 30, 60],
    ["End", 90, 10],
  ]);
});

test("a run that has not ended reaches to now", () => {
  const e = execution({ completed_at: null, status: "running", usage: { queue_ms: 10, start_ms: 0, wall_ms: 0 } });
  expect(shown(e, 400)).toEqual([
    ["Queue", 0, 10],
    ["Run", 10, 390],
  ]);
});

test("a record of an earlier version shows what came before the run as waiting", () => {
  expect(shown(execution({ usage: { wall_ms: 60 } }))).toEqual([
    ["Waiting", 0, 40],
    ["Run", 40, 60],
  ]);
});

test("a debugged run reaches to its end: stops are not in its wall time", () => {
  expect(shown(execution({ kind: "debug" })).at(-1)).toEqual(["Run", 30, 70]);
});

test("what happened in a run stands in the order of its beginning, before the end", () => {
  const e = execution({
    queries: [
      { query: "SELECT\n  2", started_at: at(50), duration_ms: 5, status: "ok", rows: 3 },
      { query: "DROP TABLE t", started_at: at(40), duration_ms: 1, status: "refused", rows: 0 },
    ],
    connections: [{ host: "a.test", port: 443, started_at: at(45), duration_ms: 9, status: "denied" }],
    outputs: [{ summary: "figure", shown_at: at(60) }, { summary: "of an earlier version" }],
  });
  const all = bars(e, 0);
  expect(all.map(({ label }) => label)).toEqual([
    ...["Queue", "Start", "Run"],
    ...["DROP TABLE t", "a.test:443", "SELECT 2", "figure"],
    "End",
  ]);
  expect(all.filter(({ isBad }) => isBad).map(({ label }) => label)).toEqual(["DROP TABLE t", "a.test:443"]);
  expect(all.find(({ label }) => label === "SELECT 2")?.note).toBe("3 rows");
});

test("a clock that went back puts nothing before the request", () => {
  const e = execution({ queries: [{ query: "SELECT 1", started_at: at(-5), duration_ms: 1, status: "ok", rows: 0 }] });
  expect(bars(e, 0).every(({ begin }) => begin >= 0)).toBe(true);
});
