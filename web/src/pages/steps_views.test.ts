import { beforeEach, expect, test } from "vitest";
import { type Call, json, serve, settle } from "../testing/service";
import { type ShownStep, StepViews } from "./steps_views";

let shown: [step: number, found: ShownStep | undefined][];
let failures: unknown[];
let calls: Call[];
const views = () =>
  new StepViews(
    "/executions/e-1",
    (step, found) => shown.push([step, found]),
    (e) => failures.push(e),
  );
const steps = () => shown.map(([step]) => step);

beforeEach(() => {
  shown = [];
  failures = [];
});

// serveSteps answers with windows of a recording in which some steps are missing. limit is what fits into one answer.
function serveSteps(missing: number[] = [], limit = 24): void {
  calls = serve(({ query }) => {
    const from = Number(query.get("from"));
    const numbers = Array.from({ length: Math.min(limit, Number(query.get("limit"))) }, (_, n) => from + n);
    const next = limit < Number(query.get("limit")) ? { next: from + limit } : {};
    return json({ steps: numbers.filter((n) => !missing.includes(n)).map((step) => ({ step })), ...next });
  });
}

test("a step is shown with the one before it, and its neighbours need no request", async () => {
  serveSteps();
  const loaded = views();
  loaded.want(20);
  await settle();
  expect(shown[0]).toEqual([20, { view: { step: 20 }, before: { step: 19 } }]);
  loaded.want(21);
  loaded.want(24);
  expect(steps()).toEqual([20, 21, 24]);
  expect(calls).toHaveLength(1);
});

test("the first step of what is loaded waits for the one before it", async () => {
  serveSteps();
  const loaded = views();
  loaded.want(20); // loads from 12 on
  await settle();
  loaded.want(12);
  await settle();
  expect(shown.at(-1)).toEqual([12, { view: { step: 12 }, before: { step: 11 } }]);
  expect(steps()).toEqual([20, 12]);
});

test("the first step has none before it", async () => {
  serveSteps();
  views().want(1);
  await settle();
  expect(shown).toEqual([[1, { view: { step: 1 }, before: undefined }]]);
});

test("while the slider moves, one request runs, and the last step is shown in the end", async () => {
  serveSteps();
  const loaded = views();
  for (const step of [100, 200, 300, 400]) loaded.want(step);
  expect(calls).toHaveLength(1);
  await settle();
  expect(steps().at(-1)).toBe(400);
  expect(calls).toHaveLength(2);
});

test("a step that was not recorded is told as such", async () => {
  serveSteps([30]);
  views().want(30);
  await settle();
  expect(shown).toEqual([[30, undefined]]);
});

test("large steps, of which few fit into an answer, are reached all the same", async () => {
  serveSteps([], 3);
  views().want(50);
  await settle();
  expect(shown.at(-1)).toEqual([50, { view: { step: 50 }, before: { step: 49 } }]);
});

test("a failure is told, and another step can be wanted", async () => {
  calls = serve(() => json({ detail: "No database." }, 503));
  const loaded = views();
  loaded.want(5);
  await settle();
  expect(failures).toHaveLength(1);
  serveSteps();
  loaded.want(6);
  await settle();
  expect(steps()).toEqual([6]);
});

test("after the page is left, nothing fails and nothing is shown", async () => {
  calls = serve(() => new Promise<Response>(() => {}));
  const loaded = views();
  loaded.want(5);
  loaded.stop();
  await settle();
  expect([shown, failures]).toEqual([[], []]);
});
