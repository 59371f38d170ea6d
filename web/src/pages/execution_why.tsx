import { useState } from "preact/hooks";
import { Problem } from "../api/problem";
import type { Execution } from "../api/records";
import { duration } from "../format";
import { Failure } from "../parts/feedback";
import { parameter, setParameters } from "../router";
import { canReplay, type KnownReplay } from "../why/recorded_replay";

// WhyButtons ask why the values of a run are so, the first of them with the look of the main action. Of a failed run they ask
// for the variables that the failed line names, and none of these is the main one. The page says once what asking costs.
export function WhyButtons(props: {
  of: Execution;
  subjects: string[];
  recording: string; // that answers, or ""
  known: KnownReplay;
  ask: (name: string) => void;
}) {
  const { of: e, recording, known, ask } = props;
  const [problem, setProblem] = useState<Problem>();
  const [recorded, setRecorded] = useState(""); // the subject for which the run runs again, or ""
  const asked = recording ? parameter("why") : "";
  const isFailure = e.status === "failed";
  const subjects = isFailure ? namedAt(e) : props.subjects;
  const shown = subjects.filter((name) => name !== asked);
  if (e.completed_at === null || shown.length === 0) return null;
  if (!recording && !canReplay(e)) return null;
  const record = async (name: string) => {
    setRecorded(name);
    setProblem(undefined);
    try {
      setParameters({ recording: (await known.record()).execution_id, why: name }, true);
    } catch (thrown) {
      setProblem(Problem.from(thrown));
    }
    setRecorded("");
  };
  return (
    <>
      {problem && <Failure problem={problem} />}
      {shown.map((name) => (
        <button
          key={name}
          class={!isFailure && name === subjects[0] ? "primary" : ""}
          disabled={recorded !== ""}
          onClick={() => (recording ? ask(name) : void record(name))}
        >
          {recorded === name ? "Running again…" : questionOf(name, e)}
        </button>
      ))}
      {!recording && !known.isLooking && (
        <span
          class="why-cost"
          title="The run was not recorded. It runs again with the rows that it got: once for a recording, and once for the values in between."
        >
          {costOf(e)}
        </span>
      )}
    </>
  );
}

// costOf says what an answer costs without a recording: a run for the recording, and one for the values in between.
export function costOf(e: Pick<Execution, "usage">): string {
  const ms = Math.max(1, Math.round(2 * e.usage.wall_ms));
  return `runs the code again, about ${ms < 1000 ? `${ms} ms` : duration(ms)}`;
}

const shortValue = 20; // characters of a value that fits into a question

// questionOf asks why a variable has its value, which is the one at a failure, if there was one.
export function questionOf(name: string, e: Execution): string {
  if (name === "result") return "Why this result?";
  const value = (e.exception?.traceback ?? []).filter(({ file }) => !file).at(-1)?.variables?.[name];
  return `Why is ${name} ${value && value.length <= shortValue ? value : "this"}?`;
}

// namedAt returns the variables that the line of a failure names, at most three.
export function namedAt(e: Execution): string[] {
  const frame = (e.exception?.traceback ?? []).filter(({ file }) => !file).at(-1);
  if (!frame) return [];
  const words = frame.code.replace(/"[^"]*"|'[^']*'/g, "").match(/[\p{L}_][\p{L}\p{N}_]*/gu) ?? [];
  return [...new Set(words)].filter((word) => Object.hasOwn(frame.variables ?? {}, word)).slice(0, 3);
}
