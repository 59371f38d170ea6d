import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/problem";
import type { Execution, Output, StepFrame } from "../api/records";
import { count, shortID, titleOf } from "../format";
import { Code } from "../parts/code";
import { useDelay } from "../parts/delay";
import { Empty, Failure, Loading } from "../parts/feedback";
import { hasKeys } from "../parts/has_keys";
import { Panel } from "../parts/panel";
import type { Names } from "../parts/python_names";
import { parameter, setParameters } from "../router";
import { Page } from "../shell";
import { linesOf, sectionsOf } from "../why/answer";
import { marks as failureOf } from "./execution_marks";
import { Find } from "./steps_find";
import { useStepKeys } from "./steps_keys";
import { runBeside } from "./steps_lines";
import { marksOf } from "./steps_marks";
import { StepOutputs } from "./steps_outputs";
import { knows, useQuestion } from "./steps_question";
import { type Recording, useRecording } from "./steps_recording";
import { Scrubber } from "./steps_scrubber";
import { Answer, History, Jump } from "./steps_story";
import { Contents } from "./steps_value";
import { valuesByLine } from "./steps_values";
import { Values } from "./steps_variables";

const noOutputs: Output[] = [];
const noNames: Names = { assignments: [], prints: [] };

// slowDelay is the time in milliseconds after which the values of another step are shown as such. Most values are there sooner.
const slowDelay = 150;

// Steps shows a recorded execution at one of its steps, and moves through them both ways. The step number and the
// current line follow the pointer at once, from the lines of all steps; the values follow when they arrive.
export function Steps({ id }: { id: string }) {
  const recording = useRecording(id);
  const { record, isShown, problem } = recording;
  const isReady = isShown && record !== undefined;
  const name = record ? titleOf(record) || shortID(id) : shortID(id);
  return (
    <Page
      title={`Steps of ${name}`}
      heading={
        <>
          <a class="crumb" href={`/ui/executions/${encodeURIComponent(id)}`}>
            {name}
          </a>{" "}
          <span class="muted" aria-hidden="true">
            /
          </span>{" "}
          Steps
        </>
      }
      intro={isReady && <Intro />}
    >
      {isReady ? <Recorded recording={recording} record={record} /> : <Unshown id={id} problem={problem} />}
    </Page>
  );
}

const Intro = () => (
  <>
    The program before each line ran.{" "}
    <span class="with-keys">{hasKeys ? "Drag the slider, or press ← and →. " : "Drag the slider. "}</span>
    Click a name in the code or a variable to see why it has its value.
  </>
);

// useNames parses the code, once the editor is loaded.
function useNames(code: string): Names {
  const [names, setNames] = useState(noNames);
  useEffect(() => {
    let gone = false;
    import("../parts/python_names").then(
      ({ namesOf }) => gone || setNames(namesOf(code)),
      () => {}, // the code has no values then
    );
    return () => {
      gone = true;
    };
  }, [code]);
  return names;
}

function Recorded({ recording, record }: { recording: Recording; record: Execution }) {
  const { path, lines, total, step, addressed, shown, problem, go } = recording;
  const picked = Math.floor(Number(parameter("line"))) || 0;
  const pick = (line: number) => setParameters({ line: line > 0 && line !== picked ? String(line) : "" }, true);
  useStepKeys(recording, picked, pick);
  const code = record.code ?? "";
  const names = useNames(code);
  const outputs = record.outputs ?? noOutputs;
  const marks = useMemo(() => marksOf(record, lines, names.prints), [record, lines, names]);
  const latestGo = useRef(go);
  latestGo.current = go;
  const show = useCallback((to: number) => latestGo.current(to), []);

  const frames = shown?.view.frames ?? [];
  const frame = frames[Math.min(frames.length - 1, Number(parameter("frame")) || 0)];
  const isCurrent = shown?.view.step === step;
  const isSlow = useDelay(!isCurrent, slowDelay);
  const question = useQuestion(recording, record, frame);
  const { asked, variable, isResult } = question;
  const result = step > total && record.result !== null ? record.result : undefined;
  // While only the step moves, the values need no work.
  const variables = useMemo(
    () => shown && <Values shown={shown} frames={frames} frame={frame} result={result} />,
    [shown, frame, result],
  );
  const behind = useMemo(
    () =>
      valuesByLine(
        names.assignments,
        lines,
        lines.positionOf(shown?.view.step ?? 0),
        shown?.view.frames ?? [],
        shown?.view.globals ?? [],
      ),
    [names, lines, shown],
  );
  const contents = useContents(recording, frame, variable);
  const line = lines.lineOf(step);
  const shownLine =
    (isCurrent && frame !== frames[0] ? frame?.line_number : line) ?? (isCurrent ? frame?.line_number : undefined) ?? 0;
  // A name that has no value here is looked for where its line ran last.
  const choose = (name: string, at: number) => {
    const runs = lines.runsOf(at);
    const position = lines.positionOf(step);
    const to = runBeside(runs, position, -1) ?? runBeside(runs, position - 1, 1);
    if (!knows(shown, frame, name) && to !== undefined) go(lines.stepAt(to));
    setParameters({ name, asked: "" }, true);
  };
  const named = asked.why ? linesOf(sectionsOf(asked.why)) : [];
  const failed = failureOf(record)
    .filter(({ isFailure }) => isFailure)
    .map(({ line, message }) => ({ line, isFailure: true, message: message ?? "" }));
  return (
    <>
      <Scrubber recording={recording} picked={picked} pick={pick} line={shownLine} marks={marks} />
      {problem && <Failure problem={problem} />}
      <Gaps recording={recording} />
      <div class="columns steps">
        <div class="steps-code">
          <Panel
            title="Code"
            note={
              shownLine
                ? `line ${shownLine}, ${step > total ? "after it ran" : "before it runs"}`
                : "the line is not in this code"
            }
          >
            <Code
              code={code}
              marks={[...failed, ...named.map((each) => ({ line: each, isFailure: false }))]}
              label="Code"
              current={shownLine}
              picked={picked}
              onLine={pick}
              onName={choose}
              values={behind}
            />
          </Panel>
        </div>
        <div class={isSlow ? "state late" : "state"} aria-busy={!isCurrent}>
          {variables}
          {question.name && (
            <Answer question={question} step={addressed} total={total} path={path} ms={record.usage.wall_ms} go={go} />
          )}
        </div>
        <div class="steps-more">
          {contents && <Contents key={contents.name} path={path} {...contents} />}
          {variable && !isResult && <History path={path} name={variable} step={addressed} go={go} />}
          <Find path={path} step={addressed} found={go} />
          <StepOutputs outputs={outputs} step={step} go={show} />
        </div>
      </div>
    </>
  );
}

interface OpenedContents {
  step: number;
  name: string;
  reference: number;
  length: number | undefined;
}

// useContents returns the chosen object, if the recording has its parts. The contents are those of the step at which the
// slider rests. They stay while it moves, with the page of the table.
function useContents({ shown, step, addressed }: Recording, frame: StepFrame | undefined, name: string) {
  const opened = useRef<OpenedContents | undefined>(undefined);
  if (!name) opened.current = undefined;
  else if (shown?.view.step === step && step === addressed) {
    const of = [...(frame?.variables ?? []), ...(shown.view.globals ?? [])].find((v) => v.name === name && v.ref);
    opened.current = of && { step, name, reference: of.ref!, length: of.length };
  }
  return opened.current;
}

// Unshown is there before the first values are, or says why there are none.
function Unshown({ id, problem }: { id: string; problem: Problem | undefined }) {
  if (!problem) return <Loading what="the recording" />;
  const back = <a href={`/ui/executions/${encodeURIComponent(id)}`}>Back to the execution</a>;
  if (problem.status !== 404) {
    return (
      <>
        <Failure problem={problem} />
        <p>{back}</p>
      </>
    );
  }
  return (
    <Empty title="There is no recording of this execution.">
      A run has one if it was debugged, or began with <em>Run and record</em> in <a href="/ui/play">the playground</a>{" "}
      or with <code>"record": true</code>. {back}
    </Empty>
  );
}

// Gaps tells which steps were not recorded, and why.
function Gaps({ recording }: { recording: Recording }) {
  const { lines, missing, go } = recording;
  return (
    <>
      {lines.gaps.map((gap) => (
        <p key={gap.first} class="notice warn">
          Steps {count(gap.first)} to {count(gap.last)} were not recorded: {gap.reason}. The axis has a mark there.
          {missing > 0 && missing >= gap.first && missing <= gap.last && (
            <Jump to={lines.stepAt(lines.positionOf(missing))} go={go} />
          )}
        </p>
      ))}
    </>
  );
}
