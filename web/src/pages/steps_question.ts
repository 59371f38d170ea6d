import { useEffect } from "preact/hooks";
import type { Execution, StepFrame } from "../api/records";
import { parameter, setParameters } from "../router";
import { endOfRun, type Line, lineParameters } from "../why/line_address";
import { type Asked, useWhy } from "../why/use_why";
import { runBeside, type StepLines } from "./steps_lines";
import type { Recording } from "./steps_recording";

// shortRun is the time in milliseconds of a run that is run again for the facts without another click.
const shortRun = 10_000;

// stepAfter returns the step at which a line has run: the one after a step, or after the last run of the line that began
// before the step "before". end is the last step to show. A line inside of a statement has no steps: they are those of the
// lines before it.
export function stepAfter(lines: StepLines, { line, step }: Line, before: number, end: number): number {
  if (step > 0) return Math.min(end, lines.stepAt(lines.after(lines.positionOf(step))));
  const limit = before > lines.total ? lines.count : lines.positionOf(before);
  for (let at = line; at > 0; at--) {
    const run = runBeside(lines.runsOf(at), limit, -1);
    if (run !== undefined) return Math.min(end, lines.stepAt(lines.after(run)));
  }
  return end;
}

// Question is what a reader of a recording wants to know of a variable.
export interface Question {
  name: string; // "": nothing is asked
  variable: string; // that has the value: of a cell, the table
  isResult: boolean; // it is the result of the run
  at: number; // the step at which it is asked
  isKept: boolean; // it stays the same while the reader moves to other steps
  asked: Asked;
  follow: (line: Line) => void; // goes to the step after a line has run, with the same question
}

// knows reports whether a variable has a value at a step.
export function knows(shown: Recording["shown"], frame: StepFrame | undefined, name: string): boolean {
  return [...(frame?.variables ?? []), ...(shown?.view.globals ?? [])].some((v) => v.name === name);
}

// useQuestion returns the question in the address. It is asked at the step that is shown, or, once a reader follows its
// lines, at the step where it was asked first.
export function useQuestion(recording: Recording, record: Execution, frame: StepFrame | undefined): Question {
  const { path, lines, areLinesLoaded, total, addressed, shown, go } = recording;
  const name = parameter("name");
  const kept = parameter("asked");
  const isResult = name === "result" && (kept ? kept === endOfRun : !knows(shown, frame, name));
  const at = kept === endOfRun ? total + 1 : Math.floor(Number(kept)) || addressed;
  // Of the end, the answer is that of the whole run, which can follow cells, too.
  const asked = useWhy(name ? path : "", isResult ? "" : name, at > total ? 0 : at, record.usage.wall_ms <= shortRun);
  const after = parameter("after");
  useEffect(() => {
    if (!after || !areLinesLoaded) return;
    const line = { line: Number(parameter("line")) || 0, step: Number(after) || 0 };
    const end = record.status === "failed" ? total : total + 1;
    const to = stepAfter(lines, line, at, end);
    go(to);
    setParameters({ step: String(to), after: "" }, true); // at once: go waits while a person moves
  }, [after, areLinesLoaded]);
  return {
    name,
    variable: /^[\p{L}_][\p{L}\p{N}_]*/u.exec(name)?.[0] ?? "",
    isResult,
    at,
    isKept: kept !== "",
    asked,
    follow: (line) => setParameters(lineParameters(line, isResult ? endOfRun : String(at)), true),
  };
}
