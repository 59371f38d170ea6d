import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import type { Execution, Output } from "../api/records";
import { duration, plural } from "../format";
import type { LineMark } from "../parts/code";
import { Copy, Failure } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { isTable, Value } from "../parts/value";
import { parameter, setParameters } from "../router";
import { mayDebug } from "../session";
import { cellPath, lastName, linesOf, sectionsOf } from "../why/answer";
import { endOfRun, lineAddress } from "../why/line_address";
import { printedNames } from "../why/printed";
import { recordedReplay } from "../why/recorded_replay";
import { useWhy } from "../why/use_why";
import { WhyPanel } from "../why/why_panel";
import { OutputPanel, resultPath, whyCell } from "./execution_outputs";

// shortRun is the time in milliseconds of a run that is run again for the facts without another click.
const shortRun = 10_000;

const isOver = (e: Execution) => e.completed_at !== null;

// AnswerState is the result of a run, and what the reader wants to know about it.
interface AnswerState {
  output: Output | undefined; // that is the result
  subjects: string[]; // that the reader may ask for: "result" is the result, others are variables that the code printed
  name: string; // of the last line: cells are asked by it, or ""
  recording: string; // the execution whose recording answers, or ""
  marks: LineMark[]; // of the lines that the answer names
  at: string; // where the question is asked: a step, or the end
  asked: ReturnType<typeof useWhy>;
}

// useAnswer finds what a run has answered. The address has the question, and the replay that answers it if the run itself
// was not recorded.
export function useAnswer(e: Execution | undefined): AnswerState {
  const output = e?.outputs.find(({ role }) => role === "result");
  const { name, isShown } = lastName(e?.code ?? "");
  const hasResult = output !== undefined || (e !== undefined && e.result !== null);
  const recording = !e ? "" : e.recorded_steps > 0 && isOver(e) ? e.execution_id : parameter("recording");
  const question = recording ? parameter("why") : "";
  const steps = question && question !== "result" && e?.status === "failed" ? e.recorded_steps : 0;
  const asked = useWhy(
    question ? `/executions/${encodeURIComponent(recording)}` : "",
    question === "result" ? "" : question,
    steps,
    (e?.usage.wall_ms ?? 0) <= shortRun,
  );
  const lines = asked.why ? linesOf(sectionsOf(asked.why)) : [];
  return {
    output,
    subjects: hasResult ? ["result"] : e ? subjectsOf(e, name) : [],
    name: isShown ? name : "",
    recording,
    marks: lines.map((line) => ({ line, isFailure: false })),
    at: steps > 0 ? String(steps) : endOfRun,
    asked,
  };
}

const maxSubjects = 3;

// subjectsOf returns what a run without a result may be asked for: the variables that it printed, or else the one that it
// set last.
function subjectsOf(e: Execution, name: string): string[] {
  const printed = printedNames(e.code ?? "").slice(0, maxSubjects);
  return printed.length > 0 ? printed : name ? [name] : [];
}

// lowestTop is the part of the height of the window below which an answer is scrolled to: what to check first would be below
// the fold.
const lowestTop = 0.4;

// mustScroll reports whether an answer whose top is there has to be scrolled to.
export function mustScroll(top: number, height: number): boolean {
  return top < 0 || top > height * lowestTop;
}

// useInSight scrolls to the answer of a question once, when it is there.
function useInSight(question: string, isThere: boolean) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const panel = place.current?.querySelector(".why-panel");
    if (question && isThere && panel && mustScroll(panel.getBoundingClientRect().top, window.innerHeight))
      panel.scrollIntoView({ block: "start" });
  }, [question, isThere]);
  return place;
}

// Answer shows the result, the code, and next to them why the result is so. A run that was not recorded is run again once.
export function Answer(props: { of: Execution; answer: AnswerState; children: ComponentChildren }) {
  const { of: e, answer } = props;
  const { output, recording, name } = answer;
  const question = recording ? parameter("why") : "";
  const ask = (why: string) => setParameters({ why }, true);
  const place = useInSight(question, answer.asked.why !== undefined);
  const askOfRow =
    name && recording
      ? whyCell(({ row, column }) => ask(cellPath(name, row, { name: column, index: 0 }, false)))
      : undefined;
  const button = <WhyButton of={e} answer={answer} ask={ask} />;
  const wide = output !== undefined || isTable(e.result);
  const hasValue = output !== undefined || e.result !== null;
  const result = (
    <>
      {output ? (
        <OutputPanel
          output={output}
          execution={e.execution_id}
          actions={button}
          onAsk={name && recording ? (row, column) => ask(cellPath(name, row, column, true)) : undefined}
        />
      ) : e.result !== null ? (
        <Panel
          title="Result"
          note={isTable(e.result) ? plural(e.result.length, "row") : undefined}
          actions={
            <span class="panel-actions">
              {button}
              <Copy label="Copy JSON" text={() => JSON.stringify(e.result, null, 2)} />
            </span>
          }
        >
          <Value of={e.result} label="Result" remote={resultPath(e)} ask={askOfRow} />
        </Panel>
      ) : null}
      {!hasValue && <div class="answer-ask">{button}</div>}
    </>
  );
  return (
    <>
      {wide && result}
      <div class={question ? "answer asked" : "answer"} ref={place}>
        <div>
          {!wide && result}
          {props.children}
        </div>
        {question && (
          <WhyPanel
            asked={answer.asked}
            path={`/executions/${encodeURIComponent(recording)}`}
            ms={e.usage.wall_ms}
            jump={(line, text) => <a href={lineAddress(recording, question, line, answer.at)}>{text}</a>}
            close={() => ask("")}
          />
        )}
      </div>
    </>
  );
}

// WhyButton asks why the result is so. Of a failed run it asks for the variables that the failed line names.
function WhyButton({ of: e, answer, ask }: { of: Execution; answer: AnswerState; ask: (name: string) => void }) {
  const [problem, setProblem] = useState<Problem>();
  const [isRecording, setRecording] = useState(false);
  const { recording } = answer;
  const asked = recording ? parameter("why") : "";
  const subjects = (e.status === "failed" ? namedAt(e) : answer.subjects).filter((name) => name !== asked);
  if (!isOver(e) || subjects.length === 0) return null;
  if (!recording && (!mayDebug.value || !e.input_log || !e.code || e.kind === "database-query")) return null;
  const record = async (name: string) => {
    setRecording(true);
    setProblem(undefined);
    try {
      setParameters({ recording: (await recordedReplay(e.execution_id)).execution_id, why: name }, true);
    } catch (thrown) {
      setProblem(Problem.from(thrown));
    }
    setRecording(false);
  };
  const isFailure = e.status === "failed";
  return (
    <>
      {problem && <Failure problem={problem} />}
      {subjects.map((name) => (
        <button
          key={name}
          class={isFailure ? "" : "primary"}
          disabled={isRecording}
          title={
            recording
              ? ""
              : "The run was not recorded. It runs again with the rows that it got: once for a recording, unless there is one already, and once for the values in between."
          }
          onClick={() => (recording ? ask(name) : void record(name))}
        >
          {isRecording
            ? "Running again…"
            : recording
              ? questionOf(name, e)
              : `${questionOf(name, e)} (runs again twice, ${duration(e.usage.wall_ms)} each without a recording)`}
        </button>
      ))}
    </>
  );
}

const shortValue = 20; // characters of a value that fits into a question

// questionOf asks why a variable has its value, which is the one at a failure, if there was one.
export function questionOf(name: string, e: Execution): string {
  if (name === "result") return "Why this result?";
  const value = (e.exception?.traceback ?? []).filter(({ file }) => !file).at(-1)?.variables?.[name];
  return value && value.length <= shortValue ? `Why is “${name}” ${value}?` : `Why has “${name}” this value?`;
}

// namedAt returns the variables that the line of a failure names, at most three.
export function namedAt(e: Execution): string[] {
  const frame = (e.exception?.traceback ?? []).filter(({ file }) => !file).at(-1);
  if (!frame) return [];
  const words = frame.code.replace(/"[^"]*"|'[^']*'/g, "").match(/[\p{L}_][\p{L}\p{N}_]*/gu) ?? [];
  return [...new Set(words)].filter((word) => Object.hasOwn(frame.variables ?? {}, word)).slice(0, 3);
}
