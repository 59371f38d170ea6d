import type { StepFrame, StepVariable } from "../api/records";
import type { Assignment } from "../parts/python_names";
import { clipped } from "../why/answer";
import { firstAtLeast, type StepLines } from "./steps_lines";

const maxValue = 60; // characters

// valuesByLine returns what is shown behind the lines of the code: each variable has its value behind the line that set it
// last before a position. A function that is not running, or runs several times at once, shows none.
export function valuesByLine(
  assignments: Assignment[],
  lines: StepLines,
  position: number,
  frames: StepFrame[],
  globals: StepVariable[],
): Map<number, string> {
  const newest = new Map<string, { assignment: Assignment; at: number }>();
  for (const assignment of assignments) {
    const runs = lines.runsOf(assignment.line);
    const at = assignment.isParameter ? -1 : (runs[firstAtLeast(runs, position) - 1] ?? -2);
    const key = `${assignment.scope} ${assignment.name}`;
    const known = newest.get(key);
    if (at > -2 && (!known || known.at < at)) newest.set(key, { assignment, at });
  }
  const shown = new Map<number, string>();
  for (const { assignment } of newest.values()) {
    const { scope, name, line } = assignment;
    const running = frames.filter((frame) => frame.function === scope);
    const variables = scope === "<module>" ? globals : running.length === 1 ? (running[0]!.variables ?? []) : [];
    const variable = variables.find((v) => v.name === name);
    if (!variable) continue;
    const text = `${name} = ${clipped(variable.value, maxValue)}`;
    shown.set(line, shown.has(line) ? `${shown.get(line)}, ${text}` : text);
  }
  return shown;
}
