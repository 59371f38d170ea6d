import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Execution, Output } from "../api/records";
import { plural } from "../format";
import type { LineMark } from "../parts/code";
import { Copy } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { isTable, Value } from "../parts/value";
import { parameter, setParameters } from "../router";
import { cellPath, lastName, linesOf, sectionsOf } from "../why/answer";
import { endOfRun, lineAddress } from "../why/line_address";
import { printedNames } from "../why/printed";
import type { KnownReplay } from "../why/recorded_replay";
import { useWhy } from "../why/use_why";
import { WhyPanel } from "../why/why_panel";
import { OutputPanel, resultPath, whyCell } from "./execution_outputs";
import { WhyButtons } from "./execution_why";

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
export function useAnswer(e: Execution | undefined, { replay, isLooking }: KnownReplay): AnswerState {
  const output = e?.outputs.find(({ role }) => role === "result");
  const { name, isShown } = lastName(e?.code ?? "");
  const hasResult = output !== undefined || (e !== undefined && e.result !== null);
  const recording = !e
    ? ""
    : e.recorded_steps > 0 && isOver(e)
      ? e.execution_id
      : parameter("recording") || (replay?.execution_id ?? "");
  const question = recording ? parameter("why") : "";
  const recorded = e?.recorded_steps || (replay?.execution_id === recording ? replay.recorded_steps : 0);
  const isFailure = e?.status === "failed" && question !== "result";
  const steps = question && isFailure ? recorded : 0; // of a failure, the variables are those where it failed
  const asked = useWhy(
    question && !(isFailure && isLooking) ? `/executions/${encodeURIComponent(recording)}` : "",
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
export function Answer(props: { of: Execution; answer: AnswerState; known: KnownReplay; children: ComponentChildren }) {
  const { of: e, answer, known } = props;
  const { output, recording, name } = answer;
  const question = recording ? parameter("why") : "";
  const ask = (why: string) => setParameters({ why, recording: e.recorded_steps > 0 ? "" : recording }, true);
  const place = useInSight(question, answer.asked.why !== undefined);
  const askOfRow =
    name && recording
      ? whyCell(({ row, column }) => ask(cellPath(name, row, { name: column, index: 0 }, false)))
      : undefined;
  const button = <WhyButtons of={e} subjects={answer.subjects} recording={recording} known={known} ask={ask} />;
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
