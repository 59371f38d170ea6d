import type { ComponentChildren } from "preact";

// Line is a line of an answer. Its step is the one before the line runs, or 0 if only the line is known.
export interface Line {
  line: number;
  step: number;
}

// Jump shows a link to the step after a line has run.
export type Jump = (line: Line, text: string) => ComponentChildren;

// The steps page has these parameters in its address: "after" is the step whose line has run at the step that is shown, or
// lastRun, "line" is its line, and "asked" is the step at which a question was asked, or endOfRun.
export const lastRun = "last";
export const endOfRun = "end";

// lineParameters returns the parameters of the step after a line has run, where the value that it set is there. The page
// shows the next step until it knows which steps are inside of a call that the line makes.
export function lineParameters({ line, step }: Line, asked: string): Record<string, string> {
  return {
    step: step > 0 ? String(step + 1) : "",
    after: step > 0 ? String(step) : lastRun,
    line: line > 0 ? String(line) : "",
    frame: "",
    asked,
  };
}

// lineAddress returns the address of that step, with the same question.
export function lineAddress(recording: string, question: string, line: Line, asked: string): string {
  const values = { name: question, ...lineParameters(line, asked) };
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
  return `/ui/executions/${encodeURIComponent(recording)}/steps?${query.toString()}`;
}
