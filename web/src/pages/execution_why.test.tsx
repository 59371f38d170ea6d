// @vitest-environment happy-dom
import { afterEach, expect, test } from "vitest";
import type { Execution } from "../api/records";
import { me } from "../session";
import { draw, leave } from "../testing/page";
import { mustScroll } from "./execution_answer";
import { namedAt, questionOf, WhyButtons } from "./execution_why";

afterEach(leave);

const frame = {
  line: 3,
  function: "share",
  code: 'return rows["total"] / total',
  variables: { rows: `{'a': ${"0".repeat(30)}}`, total: "0", other: "1" },
};
const failed = {
  status: "failed",
  exception: { traceback: [{ ...frame, code: "share(rows)" }, frame, { ...frame, file: "pandas/core.py" }] },
} as unknown as Execution;

test("a failure asks for the variables that its line names, and not for texts in it", () => {
  expect(namedAt(failed)).toEqual(["rows", "total"]);
  expect(namedAt({ status: "failed" } as Execution)).toEqual([]);
});

test("a question has the value, if that is short", () => {
  expect(questionOf("total", failed)).toBe("Why is total 0?");
  expect(questionOf("rows", failed)).toBe("Why is rows this?");
  expect(questionOf("result", failed)).toBe("Why this result?");
});

test("an answer is scrolled to unless it begins in the upper part of the window", () => {
  expect([mustScroll(-10, 900), mustScroll(20, 900), mustScroll(300, 900), mustScroll(600, 900)]).toEqual([
    true,
    false,
    false,
    true,
  ]);
});

test("the first question is the main action, and what it costs stands once", () => {
  me.value = { role: "admin" } as typeof me.value;
  const run = {
    execution_id: "e",
    kind: "execute",
    status: "completed",
    completed_at: "2026-01-01",
    code: "leader = 1",
    input_log: {},
    usage: { wall_ms: 17.3 },
  } as unknown as Execution;
  const known = { replay: undefined, isLooking: false, record: () => Promise.reject(new Error("not asked")) };
  const buttons = (recording: string) => {
    const page = draw(
      <WhyButtons of={run} subjects={["leader", "top"]} recording={recording} known={known} ask={() => {}} />,
    );
    return [...page.querySelectorAll("button, span")].map((e) => [e.textContent, e.className]);
  };
  const questions = [
    ["Why is leader this?", "primary"],
    ["Why is top this?", ""],
  ];
  expect(buttons("")).toEqual([...questions, ["runs the code again, about 35 ms", "why-cost"]]);
  expect(buttons("r")).toEqual(questions);
});
