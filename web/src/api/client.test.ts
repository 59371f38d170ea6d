import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { json, serve, settle } from "../testing/service";
import { address, get, onUnauthorized, post, remove, waiting } from "./client";
import { isAborted, Problem } from "./problem";

beforeEach(() => onUnauthorized(() => {}));
afterEach(() => vi.useRealTimers());

test("an address leaves out what is empty, and encodes the rest", () => {
  expect(address("/executions", { text: "a&b c", status: "", user_id: undefined, limit: 0 })).toBe(
    "/executions?text=a%26b+c&limit=0",
  );
  expect(address("/executions")).toBe("/executions");
});

test("a body is JSON, and an answer is read as JSON", async () => {
  const calls = serve(() => json({ ok: 1 }));
  expect(await post("/sandbox/create", { lifetime: 5 })).toEqual({ ok: 1 });
  expect(calls[0]).toMatchObject({ method: "POST", path: "/sandbox/create", body: { lifetime: 5 } });
  expect(calls[0]!.headers.get("Content-Type")).toBe("application/json");
  await get("/me");
  expect(calls[1]!.headers.has("Content-Type")).toBe(false);
});

test("an error is the problem that the service describes", async () => {
  serve(() => json({ title: "Not found", detail: "There is no sandbox s-1." }, 404));
  await expect(remove("/sandbox/s-1")).rejects.toMatchObject({
    status: 404,
    title: "Not found",
    message: "There is no sandbox s-1.",
  });
});

test("an error without a description says the status", async () => {
  serve(() => new Response("<html>", { status: 502, statusText: "Bad Gateway" }));
  await expect(get("/me")).rejects.toMatchObject({ status: 502, message: "The service answered 502 Bad Gateway." });
});

test("a service that cannot be reached is a problem, too", async () => {
  serve(() => {
    throw new TypeError("Failed to fetch");
  });
  await expect(get("/me")).rejects.toMatchObject({ status: 0, title: "The service cannot be reached" });
});

test("the session learns of a key that is no longer valid", async () => {
  const reasons: string[] = [];
  onUnauthorized((problem) => reasons.push(problem.detail));
  serve(() => json({ detail: "This key was revoked." }, 401));
  await expect(get("/me")).rejects.toBeInstanceOf(Problem);
  expect(reasons).toEqual(["This key was revoked."]);
});

test("a request that was aborted is not a problem", async () => {
  const request = new AbortController();
  serve(() => new Promise<Response>(() => {}));
  const answer = get("/me", {}, request.signal);
  request.abort();
  const thrown = await answer.catch((error: unknown) => error);
  expect(isAborted(thrown)).toBe(true);
});

test("a GET beyond a limit is sent again when the limit admits it", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const calls = serve((_, number) =>
    number === 0 ? json({ detail: "Too many requests." }, 429, { "Retry-After": "7" }) : json({ ok: true }),
  );
  const answer = get("/executions");
  await settle();
  expect(waiting.value?.detail).toBe("Too many requests.");
  vi.advanceTimersByTime(6999);
  await settle();
  expect(calls).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(await answer).toEqual({ ok: true });
  expect(waiting.value).toBeUndefined();
});

test.each([
  ["a POST", () => post("/executions"), "1"],
  ["a limit of more than a minute", () => get("/executions"), "61"],
  ["a limit without a time", () => get("/executions"), ""],
])("%s is not sent again", async (_, send, after) => {
  const calls = serve(() => json({}, 429, after ? { "Retry-After": after } : {}));
  await expect(send()).rejects.toMatchObject({ status: 429 });
  expect(calls).toHaveLength(1);
});

test("a request that waits for a limit can be aborted", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const request = new AbortController();
  const calls = serve(() => json({}, 429, { "Retry-After": "7" }));
  const answer = get("/executions", {}, request.signal);
  await settle();
  request.abort();
  expect(isAborted(await answer.catch((error: unknown) => error))).toBe(true);
  expect(waiting.value).toBeUndefined();
  expect(calls).toHaveLength(1);
});
