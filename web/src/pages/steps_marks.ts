import type { Execution, Output } from "../api/records";
import type { StepLines } from "./steps_lines";

const maxPrints = 5000; // marks that the axis draws

// Mark is what happened at some steps of a run, which have marks on the axis.
export interface Mark {
  kind: "query" | "print" | "output" | "failure";
  label: string;
  steps: number[]; // in order
}

// stepsOf returns the steps that showed an output, in order.
export function stepsOf(outputs: Output[]): number[] {
  return [...new Set(outputs.flatMap(({ step }) => step ?? []))].sort((a, b) => a - b);
}

// marksOf returns what happened in a run, without what did not happen. prints are the lines that print.
export function marksOf(e: Execution, lines: StepLines, prints: number[]): Mark[] {
  const marks: Mark[] = [
    { kind: "query", label: "query", steps: [...new Set(e.queries.flatMap(({ step }) => step || []))] },
    {
      kind: "print",
      label: "print",
      steps: e.stdout
        ? prints
            .flatMap((line) => [...lines.runsOf(line).subarray(0, maxPrints)].map((at) => lines.stepAt(at)))
            .sort((a, b) => a - b)
        : [],
    },
    { kind: "output", label: "output", steps: stepsOf(e.outputs) },
    { kind: "failure", label: "failure", steps: e.status === "failed" && e.exception ? [e.recorded_steps] : [] },
  ];
  return marks.filter(({ steps }) => steps.length > 0);
}

// after returns the first of the steps behind a step, or the first of all.
export function after(steps: number[], step: number): number {
  return steps.find((each) => each > step) ?? steps[0]!;
}
