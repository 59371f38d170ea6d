import { afterEach, expect, test } from "vitest";
import { Problem } from "../api/problem";
import { EventStream, json, serve, settle } from "../testing/service";
import { advice, Session } from "./play_session";

let session = new Session();
afterEach(() => session.leave());

const rules = { limits: { write_policy: "reject" }, functions: { Database: [] } };
const created = { sandbox_id: "s-1", data: { config: { write_policy: "capture" } } };

test("a session begins when it is first needed, and once", async () => {
  session = new Session("", { write_policy: "capture" });
  expect(session.state.value).toBe("none");
  const calls = serve(({ path }) => (path === "/sandbox/create" ? json(created) : json(rules)));
  expect(await Promise.all([session.ensure(), session.ensure()])).toEqual(["s-1", "s-1"]);
  expect(calls.filter(({ path }) => path === "/sandbox/create")).toHaveLength(1);
  expect(calls[0]!.body).toMatchObject({ write_policy: "capture", lifetime: 28_800, idle_timeout: 1800 });
  expect(session.state.value).toBe("live");
});

test("a session that cannot begin leaves none, and the run says why", async () => {
  session = new Session();
  serve(() => json({ detail: "Too many sandboxes." }, 429));
  const run = await session.run({ code: "1" });
  expect(session.state.value).toBe("none");
  expect(session.runs.value).toEqual([run]);
  expect(run.status.value).toBe("not run");
  expect(run.problem?.detail).toBe("Too many sandboxes.");
});

test("an ended sandbox ends the session, and nothing else does", () => {
  session = new Session("s-1");
  for (const status of [409, 422, 429, 500]) expect(session.learn(new Problem(status, "", ""))).toBe(false);
  expect(session.state.value).toBe("opening");
  expect(session.learn(new Problem(410, "", ""))).toBe(true);
  expect(session.state.value).toBe("ended");
  expect(new Session().learn(new Problem(404, "", ""))).toBe(false);
});

test("code is checked without a session, as in one that would begin", async () => {
  session = new Session("", { write_policy: "capture" });
  const calls = serve(() => json({ problems: [] }));
  await session.inspect("check", { code: "1" });
  expect(calls[0]).toMatchObject({ path: "/sandbox/check", body: { code: "1", config: { write_policy: "capture" } } });
});

test("one inspection is sent at a time, also after one that failed", async () => {
  session = new Session("s-1");
  const answers: ((response: Response) => void)[] = [];
  const calls = serve(() => new Promise((resolve) => answers.push(resolve)));
  const first = session.inspect("check", { code: "1" });
  const second = session.inspect("complete", { code: "2", cursor: 1 });
  await settle();
  expect(calls).toHaveLength(1);
  answers[0]!(json({}, 409));
  await expect(first).rejects.toMatchObject({ status: 409 });
  await settle();
  expect(calls[1]!.path).toBe("/sandbox/s-1/complete");
  answers[1]!(json({ matches: [] }));
  expect(await second).toEqual({ matches: [] });
});

test("the tables of a database are loaded once, and again after a failure", async () => {
  session = new Session();
  let isDown = true;
  const calls = serve(() => (isDown ? json({}, 503) : json({ schema: { tables: ["users"] } })));
  await expect(session.schema("sales")).rejects.toMatchObject({ status: 503 });
  isDown = false;
  expect((await session.schema("sales")).tables).toEqual(["users"]);
  await session.schema("sales");
  expect(calls).toHaveLength(2);
  expect(calls[0]!.path + calls[0]!.query).toBe("/database/schemadatabase=sales");
});

test("a session that is opened has its former runs, and the last ones with their records", async () => {
  const summaries = [1, 2, 3, 4, 5].map((n) => ({ execution_id: `e-${n}`, code: `${n}`, status: "completed" }));
  const calls = serve(({ path, query }) => {
    if (path.endsWith("/help/functions")) return json(rules);
    if (path.endsWith("/history")) return json({ total_executions: 42 });
    if (path === "/executions") return json({ executions: summaries, next: query.get("sandbox_id") });
    return json({ status: "completed", code: "whole" });
  });
  session = new Session("s-1");
  await session.open();
  await settle();
  expect(session.state.value).toBe("live");
  expect(session.limits.value).toEqual(rules.limits);
  expect(session.runs.value.map(({ id }) => id)).toEqual(["e-1", "e-2", "e-3", "e-4", "e-5"]);
  expect(session.runs.value.map(({ isLoaded }) => isLoaded)).toEqual([true, true, true, false, false]);
  expect(session.unlisted.value).toBe(37);
  expect(calls.map(({ path }) => path)).not.toContain("/executions/e-4");
});

test("a session runs code while one of its runs is not over", async () => {
  const stream = new EventStream({ Location: "/executions/e-1" });
  serve(() => stream.response);
  session = new Session("s-1");
  const running = session.run({ code: "1" });
  await settle();
  expect(session.isRunning).toBe(true);
  const changes = session.changes.value;
  stream.event("done", { execution_id: "e-1", status: "completed" });
  await running;
  expect(session.isRunning).toBe(false);
  expect(session.changes.value).toBe(changes + 1); // variables and files may be others
});

test("a problem that a person can do something about says what", () => {
  for (const status of [0, 403, 409, 413, 422, 429, 503]) expect(advice(new Problem(status, "", ""))).not.toBe("");
  expect(advice(new Problem(500, "", ""))).toBe("");
  expect(advice(new Problem(429, "", ""))).toContain("your code is kept");
});
