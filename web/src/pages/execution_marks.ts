import type { Execution } from "../api/records";
import type { LineMark } from "../parts/code";

// marks returns the lines of the code that an exception passed through. The innermost one in the code itself is where
// it failed; deeper frames are in libraries.
export function marks(e: Execution): LineMark[] {
  const frames = (e.exception?.traceback ?? []).filter((frame) => !frame.file && frame.line > 0);
  const summary = e.error ?? "";
  if (frames.length === 0) {
    return e.exception?.line
      ? [{ line: e.exception.line, isFailure: true, message: summary, hint: e.exception.hint ?? "" }]
      : [];
  }
  const last = frames.at(-1)!;
  if (e.status === "cancelled") return [{ line: last.line, isFailure: false }];
  return [
    ...frames
      .slice(0, -1)
      .filter((frame) => frame.line !== last.line)
      .map((frame) => ({ line: frame.line, isFailure: false })),
    {
      line: last.line,
      isFailure: true,
      code: last.code,
      message: summary,
      hint: e.exception?.hint ?? "",
      variables: last.variables ?? {},
    },
  ];
}
