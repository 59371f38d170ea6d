import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { EventStream, json, serve, settle } from "../testing/service";
import { onUnauthorized } from "./client";
import { follow, isFinal, type ServerEvent, startExecution } from "./events";
import { Problem } from "./problem";

let received: ServerEvent[];
let lost: Problem[];
let stop: () => void;
const listener = {
  onEvent: (event: ServerEvent) => received.push(event),
  onLost: (problem: Problem) => lost.push(problem),
};
const texts = () => received.map(({ data }) => data);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  received = [];
  lost = [];
  stop = () => {};
});
afterEach(() => {
  stop();
  vi.useRealTimers();
  setHidden(false);
});

function setHidden(isHidden: boolean): void {
  Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}

test("events are read wherever the pieces of the stream end", async () => {
  const stream = new EventStream();
  serve(() => stream.response);
  stop = follow("/events", {}, listener);
  const bytes = new TextEncoder().encode(": a comment\n\nid: 7\nevent: stdout\ndata: ä€😀\n\nevent: x\n");
  for (const byte of bytes) stream.send(new Uint8Array([byte]));
  stream.send("data:two\ndata: lines\n\nevent: no data\n\n");
  await settle();
  expect(received).toEqual([
    { id: "7", name: "stdout", data: "ä€😀" },
    { id: "", name: "x", data: "two\nlines" },
  ]);
});

test("after a lost connection the events continue behind the last one", async () => {
  const streams = [new EventStream(), new EventStream()];
  const calls = serve((_, number) => streams[number]!.response);
  stop = follow("/events", { user_id: "ann" }, listener, "3");
  expect(calls[0]!.headers.get("Last-Event-ID")).toBe("3");
  streams[0]!.event("began", 1, "4");
  streams[0]!.event("began", 2); // without an id, which leaves the last one
  await settle();
  streams[0]!.fail();
  await settle();
  expect(lost).toHaveLength(1);
  expect(calls).toHaveLength(1);
  vi.advanceTimersByTime(500);
  await settle();
  expect(calls[1]!.headers.get("Last-Event-ID")).toBe("4");
  expect(calls[1]!.query.get("user_id")).toBe("ann");
  streams[1]!.event("began", 3, "5");
  await settle();
  expect(texts()).toEqual(["1", "2", "3"]);
});

test("attempts to connect are further and further apart, up to 15 seconds", async () => {
  const calls = serve(() => json({}, 503));
  stop = follow("/events", {}, listener);
  for (const delay of [500, 1000, 2000, 4000, 8000, 15_000, 15_000]) {
    await settle();
    const before = calls.length;
    vi.advanceTimersByTime(delay - 1);
    await settle();
    expect(calls, `before ${delay} ms`).toHaveLength(before);
    vi.advanceTimersByTime(1);
    await settle();
    expect(calls, `after ${delay} ms`).toHaveLength(before + 1);
  }
});

test("after a connection, the next failure is tried again soon", async () => {
  const stream = new EventStream();
  const calls = serve((_, number) => (number === 3 ? stream.response : json({}, 503)));
  stop = follow("/events", {}, listener);
  for (const delay of [500, 1000, 2000]) {
    await settle();
    vi.advanceTimersByTime(delay);
  }
  await settle();
  stream.end();
  await settle();
  vi.advanceTimersByTime(500);
  await settle();
  expect(calls).toHaveLength(5);
});

test("what fails in the same way again is not tried again", async () => {
  const calls = serve(() => json({ detail: "There is no such execution." }, 404));
  stop = follow("/events", {}, listener);
  await settle();
  vi.advanceTimersByTime(60_000);
  await settle();
  expect(calls).toHaveLength(1);
  expect(lost.map(({ status }) => status)).toEqual([404]);
  expect([400, 403, 404, 429, 500, 503, 0].map((status) => isFinal(new Problem(status, "", "")))).toEqual([
    ...[true, true, true],
    ...[false, false, false, false],
  ]);
});

test("an error in the stream is told with its reason, also to the session", async () => {
  const reasons: string[] = [];
  onUnauthorized((problem) => reasons.push(problem.detail));
  const stream = new EventStream();
  serve(() => stream.response);
  stop = follow("/events", {}, listener);
  stream.event("error", { status: 401, title: "Unauthorized", detail: "This key was revoked." });
  await settle();
  expect(lost[0]).toMatchObject({ status: 401, detail: "This key was revoked." });
  expect(reasons).toEqual(["This key was revoked."]);
  expect(received).toEqual([]);
});

test("an answer without content is the end", async () => {
  const onEnd = vi.fn();
  const calls = serve(() => new Response(null, { status: 204 }));
  stop = follow("/events", {}, { ...listener, onEnd });
  await settle();
  vi.advanceTimersByTime(60_000);
  await settle();
  expect(onEnd).toHaveBeenCalledOnce();
  expect(calls).toHaveLength(1);
});

test("a hidden page has no connection, and connects when it is seen", async () => {
  const calls = serve(() => new EventStream().response);
  setHidden(true);
  stop = follow("/events", {}, listener);
  await settle();
  expect(calls).toHaveLength(0);
  setHidden(false);
  await settle();
  expect(calls).toHaveLength(1);
  setHidden(true);
  await settle();
  expect(calls[0]!.signal!.aborted).toBe(true);
  expect(lost).toEqual([]);
});

test("nothing is read after the end was asked for", async () => {
  const stream = new EventStream();
  const calls = serve(() => stream.response);
  stop = follow("/events", {}, listener);
  await settle();
  stop();
  stream.end();
  setHidden(false);
  await settle();
  vi.advanceTimersByTime(60_000);
  await settle();
  expect(calls).toHaveLength(1);
  expect(calls[0]!.signal!.aborted).toBe(true);
});

test("an execution is followed at its location if its answer breaks off", async () => {
  const streams = [new EventStream({ Location: "/executions/e-1" }), new EventStream()];
  const calls = serve((_, number) => streams[number]!.response);
  stop = startExecution(
    "/sandbox/s-1/execute",
    { code: "1" },
    { ...listener, onRefused: () => expect.fail("refused") },
  );
  streams[0]!.event("stdout", { text: "a" }, "1");
  await settle();
  streams[0]!.fail();
  await settle();
  expect(calls[1]).toMatchObject({ method: "GET", path: "/executions/e-1" });
  expect(calls[1]!.headers.get("Last-Event-ID")).toBe("1");
  streams[1]!.event("done", {}, "2");
  await settle();
  expect(received.map(({ name }) => name)).toEqual(["stdout", "done"]);
});

test("an execution that is done is not followed", async () => {
  const stream = new EventStream({ Location: "/executions/e-1" });
  const calls = serve(() => stream.response);
  stop = startExecution("/sandbox/s-1/execute", {}, { ...listener, onRefused: () => expect.fail("refused") });
  stream.event("done", {});
  stream.end();
  await settle();
  expect(calls).toHaveLength(1);
});

test("code that the service refuses has a reason, and is not sent again", async () => {
  const refused: Problem[] = [];
  const calls = serve(() => json({ detail: "The sandbox has ended." }, 410));
  stop = startExecution("/sandbox/s-1/execute", {}, { ...listener, onRefused: (problem) => refused.push(problem) });
  await settle();
  expect(refused.map(({ detail }) => detail)).toEqual(["The sandbox has ended."]);
  expect(calls).toHaveLength(1);
});
