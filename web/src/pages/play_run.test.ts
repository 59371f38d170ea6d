import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Execution, Summary } from "../api/records";
import { EventStream, json, serve, settle } from "../testing/service";
import { Run } from "./play_run";

let stream: EventStream;
let run: Run;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  stream = new EventStream({ Location: "/executions/e-1" });
  run = new Run("print(1)");
});
afterEach(() => {
  run.leave();
  vi.useRealTimers();
});

const done = (changes = {}) => ({ execution_id: "e-1", status: "completed", stdout: "", stderr: "", ...changes });

test("a run shows what its code prints while it runs", async () => {
  const calls = serve(() => stream.response);
  void run.start("s-1", { code: "print(1)" });
  expect(run.status.value).toBe("starting");
  stream.event("started", { execution_id: "e-1" });
  stream.event("stdout", { text: "1 of 2\r" });
  stream.event("stdout", { text: "2 of 2\n" });
  stream.event("stderr", { text: "careful", truncated: true });
  await settle();
  expect(calls[0]).toMatchObject({ method: "POST", path: "/sandbox/s-1/execute", body: { code: "print(1)" } });
  expect(run.id).toBe("e-1");
  expect(run.status.value).toBe("running");
  expect(run.isOver).toBe(false);
  expect(run.stdout.text).toBe("2 of 2\n");
  expect(run.isCut).toEqual({ stdout: false, stderr: true });
  expect(run.version.value).toBe(0); // drawn together, a moment later
  vi.advanceTimersByTime(100);
  expect(run.version.value).toBe(1);
});

test("a run that has ended shows its record, also the parts that an answer leaves out", async () => {
  serve(() => stream.response);
  const ended = run.start("s-1", { code: "" });
  stream.event("started", { execution_id: "e-1" });
  stream.event("stdout", { text: "a part" });
  stream.event("done", done({ status: "failed", stdout: "all of it\n", truncated: { outputs: 2 } }));
  await ended;
  expect(run.isOver).toBe(true);
  expect(run.stdout.text).toBe("all of it\n");
  expect(run.record).toMatchObject({ status: "failed", outputs: [], queries: [], artifacts: [], stdout: "" });
  expect(run.left.outputs).toBe(2);
});

test("of many outputs and statements the first are kept, and the others are counted", async () => {
  serve(() => stream.response);
  void run.start("s-1", { code: "" });
  for (let n = 0; n < 100; n++) stream.event("query", { query: `SELECT ${n}` });
  await settle();
  expect(run.queries).toHaveLength(61);
  expect(run.left.queries).toBe(39);
});

test("code that the service refuses was not run", async () => {
  serve(() => json({ detail: "Something else runs." }, 409));
  await run.start("s-1", { code: "" });
  expect(run.status.value).toBe("not run");
  expect(run.isOver).toBe(true);
  expect(run.problem?.detail).toBe("Something else runs.");
});

test("a lost connection is not an end: the run is followed on", async () => {
  const next = new EventStream();
  serve((_, number) => (number === 0 ? stream.response : next.response));
  void run.start("s-1", { code: "" });
  stream.event("started", { execution_id: "e-1" });
  await settle();
  stream.fail();
  await settle();
  expect(run.status.value).toBe("running");
  next.event("done", done());
  await settle();
  expect(run.isLost).toBe(false);
  expect(run.status.value).toBe("completed");
});

test("Stop before the run has begun takes effect when it begins", async () => {
  const calls = serve(({ path }) => (path.endsWith("/cancel") ? json({}) : stream.response));
  void run.start("s-1", { code: "" });
  await run.cancel();
  expect(run.isCancelled).toBe(true);
  expect(calls.map(({ path }) => path)).toEqual(["/sandbox/s-1/execute"]);
  stream.event("started", { execution_id: "e-1" });
  await settle();
  expect(calls.at(-1)).toMatchObject({ method: "POST", path: "/executions/e-1/cancel" });
});

test("a run that cannot be stopped can be stopped again", async () => {
  serve(({ path }) => (path.endsWith("/cancel") ? json({ detail: "No database." }, 503) : stream.response));
  void run.start("s-1", { code: "" });
  stream.event("started", { execution_id: "e-1" });
  await settle();
  await run.cancel();
  expect(run.isCancelled).toBe(false);
  expect(run.problem?.detail).toBe("No database.");
});

test("a run of the history is loaded when it is opened, and followed if it still runs", async () => {
  const summary = {
    execution_id: "e-1",
    code: "prin",
    status: "running",
    created_at: "2026-01-01T00:00:00Z",
  } as Summary;
  run = Run.of(summary);
  expect([run.isLoaded, run.isWhole]).toEqual([false, false]);
  const record = { code: "print(1)", status: "running" } as Execution;
  const calls = serve((_, number) => (number === 0 ? json(record) : stream.response));
  void run.load();
  await settle();
  expect(run.code).toBe("print(1)");
  expect(run.isWhole).toBe(true);
  expect(calls[1]!.headers.get("Accept")).toBe("text/event-stream");
  stream.event("done", done({ stdout: "1\n" }));
  await settle();
  expect(run.status.value).toBe("completed");
  expect(run.stdout.text).toBe("1\n");
});
