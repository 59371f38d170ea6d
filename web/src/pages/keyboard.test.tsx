// @vitest-environment happy-dom
import { useState } from "preact/hooks";
import { afterEach, expect, test } from "vitest";
import { draw, leave, press } from "../testing/page";
import type { DebugSession, Move } from "./debug_session";
import { useDebugKeys } from "./debug_toolbar";
import { useStepKeys } from "./steps_keys";
import type { StepLines } from "./steps_lines";
import type { Recording } from "./steps_recording";

afterEach(leave);

// A recording of 50 steps, in which line 3 ran at the steps 5, 20 and 40. The person is at step 20.
function showSteps() {
  const gone: number[] = [];
  const picked: number[] = [];
  const lines = {
    count: 51,
    stepAt: (position: number) => Math.max(1, Math.min(51, position + 1)),
    positionOf: (step: number) => step - 1,
    lineOf: () => 3,
    runsOf: (line: number) => Uint32Array.from(line === 3 ? [4, 19, 39] : []),
  } as unknown as StepLines;
  const recording = {
    lines,
    step: 20,
    latestStep: () => 20,
    go: (to: number) => gone.push(to),
  } as unknown as Recording;
  const Page = () => {
    useStepKeys(recording, 3, (line) => picked.push(line));
    return <input />;
  };
  return { gone, picked, page: draw(<Page />) };
}

test.each([
  ["ArrowLeft", {}, 19],
  ["ArrowRight", {}, 21],
  ["ArrowLeft", { shiftKey: true }, 10],
  ["ArrowRight", { shiftKey: true }, 30],
  ["Home", {}, 1],
  ["End", {}, 51],
  ["n", {}, 40],
  ["p", {}, 5],
])("in the steps, %s with %j goes to step %d", (key, init, step) => {
  const { gone } = showSteps();
  expect(press(key, init)).toBe(true);
  expect(gone).toEqual([step]);
});

test("h picks the line of the step", () => {
  const { picked } = showSteps();
  press("h");
  expect(picked).toEqual([3]);
});

test("keys of the browser and keys in a field are left alone", () => {
  const { gone, page } = showSteps();
  expect(press("ArrowLeft", { altKey: true })).toBe(false);
  expect(press("p", { ctrlKey: true })).toBe(false);
  expect(press("n", {}, page.querySelector("input")!)).toBe(false);
  expect(press("x")).toBe(false);
  expect(gone).toEqual([]);
});

function showDebugger(state: string | undefined) {
  const done: string[] = [];
  const session = {
    position: { value: state && { state } },
    move: (move: Move) => done.push(move),
    pause: () => done.push("pause"),
    end: () => done.push("end"),
  } as unknown as DebugSession;
  const Page = () => {
    useDebugKeys({
      session: state ? session : undefined,
      proceed: () => done.push("proceed"),
      toggleBreakpoint: () => done.push("toggle"),
    });
    return null;
  };
  draw(<Page />);
  return done;
}

test.each([
  ["F5", {}, "proceed"],
  ["F5", { shiftKey: true }, "end"],
  ["F5", { altKey: true }, "reverseContinue"],
  ["F6", {}, "pause"],
  ["F9", {}, "toggle"],
  ["F10", {}, "next"],
  ["F10", { altKey: true }, "stepBack"],
  ["F11", {}, "stepIn"],
  ["F11", { shiftKey: true }, "stepOut"],
])("in the debugger, %s with %j does %s, and not what the browser would", (key, init, command) => {
  const done = showDebugger("stopped");
  expect(press(key, init)).toBe(true);
  expect(done).toEqual([command]);
});

test("a program that has ended is not ended again", () => {
  const done = showDebugger("ended");
  press("F5", { shiftKey: true });
  expect(done).toEqual([]);
});

test("without a session, keys start the code and set breakpoints, and move nothing", () => {
  const done = showDebugger(undefined);
  for (const key of ["F5", "F9", "F10", "F6"]) press(key);
  expect(done).toEqual(["proceed", "toggle"]);
});

test("a listener of a page that was left takes no key", () => {
  const done = showDebugger("stopped");
  leave();
  expect(press("F10")).toBe(false);
  expect(done).toEqual([]);
});

test("a key that follows another at once finds what that one did", async () => {
  const Page = () => {
    const [n, setN] = useState(0);
    useDebugKeys({ session: undefined, proceed: () => 0, toggleBreakpoint: () => setN(n + 1) });
    return <output>{n}</output>;
  };
  const page = draw(<Page />);
  for (const wanted of ["1", "2"]) {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "F9", bubbles: true })); // press would wait longer
    await Promise.resolve();
    expect(page.textContent).toBe(wanted);
  }
});
