import { beforeEach, expect, test } from "vitest";
import { serve } from "../testing/service";
import { buckets, firstAtLeast, runBeside, StepLines } from "./steps_lines";
import { stepAfter } from "./steps_question";

// A recording of 12 steps. Steps 5 to 7 were not recorded; the lines of all other steps are below.
const lines = [1, 2, 3, 2, /* gap */ 3, 2, 3, 4, 0];
// The line at step 2 calls a function, in which the steps 3, 4 and 8 are.
const depths = [1, 1, 2, 2, /* gap */ 2, 1, 1, 2, 1];
let recording: StepLines;

beforeEach(async () => {
  const head = JSON.stringify({
    total_steps: 12,
    count: lines.length,
    gaps: [{ first: 5, last: 7, reason: "too fast" }],
  });
  const padded = new TextEncoder().encode(head.padEnd(Math.ceil(head.length / 4) * 4));
  const body = new Uint8Array(4 + padded.length + 6 * lines.length);
  const view = new DataView(body.buffer);
  view.setUint32(0, padded.length, true);
  body.set(padded, 4);
  for (const [index, line] of lines.entries()) view.setUint32(4 + padded.length + 4 * index, line, true);
  const behind = 4 + padded.length + 4 * lines.length;
  for (const [index, depth] of depths.entries()) view.setUint16(behind + 2 * index, depth, true);
  serve(() => new Response(body));
  recording = await StepLines.load("/executions/e-1", new AbortController().signal);
});

test("recorded steps have positions in a row, and the end of the run is the last", () => {
  expect(recording.count).toBe(10);
  expect([1, 4, 8, 12, 13].map((step) => recording.positionOf(step))).toEqual([0, 3, 4, 8, 9]);
  expect([0, 3, 4, 8, 9].map((position) => recording.stepAt(position))).toEqual([1, 4, 8, 12, 13]);
});

test("a step that was not recorded has the position of the one before it", () => {
  expect([5, 6, 7].map((step) => recording.positionOf(step))).toEqual([3, 3, 3]);
});

test("a line has run where the calls that it made have ended", () => {
  expect([0, 1, 2, 5, 6, 8, 9].map((position) => recording.after(position))).toEqual([1, 5, 3, 6, 8, 9, 9]);
});

test("the step after a line is the next one in its function, and that of a line that failed is the failure", () => {
  const at = (step: number, end = 13) => stepAfter(recording, { line: 0, step }, 13, end);
  expect([at(1), at(2), at(12), at(12, 12)]).toEqual([2, 9, 13, 12]);
});

test("a line without a step is seen after its last run before the question", () => {
  const at = (line: number, before = 13) => stepAfter(recording, { line, step: 0 }, before, 13);
  expect([at(2), at(2, 4), at(3)]).toEqual([10, 9, 12]);
  expect(at(7)).toBe(12); // inside of the statement that begins at line 4
});

test("a position outside is the nearest one inside", () => {
  expect(recording.stepAt(-5)).toBe(1);
  expect(recording.stepAt(500)).toBe(13);
  expect(recording.positionOf(500)).toBe(9);
});

test("a step has its line: none in another file, and none at the end of the run", () => {
  expect([1, 2, 8, 12, 13].map((step) => recording.lineOf(step))).toEqual([1, 2, 3, 0, undefined]);
});

test("before the lines are loaded, only the number of steps is known", () => {
  const unknown = StepLines.without(5);
  expect(unknown.count).toBe(6);
  expect(unknown.stepAt(2)).toBe(3);
  expect(unknown.lineOf(3)).toBeUndefined();
});

test("the runs of a line are found in both directions", () => {
  const runs = recording.runsOf(2);
  expect([...runs]).toEqual([1, 3, 5]);
  expect([0, 1, 3, 5].map((position) => runBeside(runs, position, 1))).toEqual([1, 3, 5, undefined]);
  expect([1, 2, 3, 9].map((position) => runBeside(runs, position, -1))).toEqual([undefined, 1, 1, 5]);
  expect(runBeside(recording.runsOf(99), 0, 1)).toBeUndefined();
});

test("a sorted list is searched by halves", () => {
  const list = Uint32Array.from([2, 4, 4, 9]);
  expect([0, 2, 3, 4, 5, 9, 10].map((limit) => firstAtLeast(list, limit))).toEqual([0, 0, 1, 1, 3, 3, 4]);
  expect(firstAtLeast(new Uint32Array(), 1)).toBe(0);
});

test("runs are counted in equal parts of the axis", () => {
  expect([...buckets(Uint32Array.from([0, 1, 49, 50, 99]), 100, 2)]).toEqual([3, 2]);
  expect([...buckets(Uint32Array.from([99]), 100, 1000)].indexOf(1)).toBe(990);
});
