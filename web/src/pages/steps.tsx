import { useCallback, useMemo, useRef } from "preact/hooks";
import type { Problem } from "../api/problem";
import type { Output } from "../api/records";
import { count, shortID } from "../format";
import { Code } from "../parts/code";
import { useDelay } from "../parts/delay";
import { Empty, Failure, Loading } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { parameter, setParameters } from "../router";
import { Page } from "../shell";
import { Find } from "./steps_find";
import { useStepKeys } from "./steps_keys";
import { StepOutputs, stepsOf } from "./steps_outputs";
import { type Recording, useRecording } from "./steps_recording";
import { Scrubber } from "./steps_scrubber";
import { Jump, Story } from "./steps_story";
import { Contents } from "./steps_value";
import { Values } from "./steps_variables";

const noOutputs: Output[] = [];

const title = (id: string) => `Steps of ${shortID(id)}`;

// slowDelay is the time in milliseconds after which the values of another step are shown as such. Most values are there sooner.
const slowDelay = 150;

// Steps shows a recorded execution at one of its steps, and moves through them both ways. The step number and the
// current line follow the pointer at once, from the lines of all steps; the values follow when they arrive.
export function Steps({ id }: { id: string }) {
  const recording = useRecording(id);
  const { path, record, lines, total, step, addressed, shown, isShown, problem, go } = recording;
  const picked = Math.floor(Number(parameter("line"))) || 0;
  const pick = (line: number) => setParameters({ line: line > 0 && line !== picked ? String(line) : "" }, true);
  useStepKeys(recording, picked, pick);
  const line = lines.lineOf(step);
  const outputs = record?.outputs ?? noOutputs;
  const outputSteps = useMemo(() => stepsOf(outputs), [outputs]);
  const latestGo = useRef(go);
  latestGo.current = go;
  const show = useCallback((to: number) => latestGo.current(to), []);

  const frames = shown?.view.frames ?? [];
  const frame = frames[Math.min(frames.length - 1, Number(parameter("frame")) || 0)];
  const isCurrent = shown?.view.step === step;
  const isSlow = useDelay(!isCurrent, slowDelay);
  const opened = useRef<{ step: number; name: string; reference: number; length: number | undefined } | undefined>(
    undefined,
  );
  // While only the step moves, the values need no work.
  const values = useMemo(() => shown && <Values shown={shown} frames={frames} frame={frame} />, [shown, frame]);

  if (!isShown || !record) {
    return (
      <Page title={title(id)}>
        <Unshown id={id} problem={isShown ? undefined : problem} />
      </Page>
    );
  }
  const shownLine =
    (isCurrent && frame !== frames[0] ? frame?.line_number : line) ?? (isCurrent ? frame?.line_number : undefined) ?? 0;
  const chosen = parameter("name");
  // The contents are those of the step at which the slider rests. They stay while it moves, with the page of the table.
  if (!chosen) opened.current = undefined;
  else if (isCurrent && step === addressed) {
    const of = [...(frame?.variables ?? []), ...(shown?.view.globals ?? [])].find((v) => v.name === chosen && v.ref);
    opened.current = of && { step, name: chosen, reference: of.ref!, length: of.length };
  }
  return (
    <Page
      title={title(id)}
      heading={
        <>
          <a class="crumb" href={`/ui/executions/${encodeURIComponent(id)}`}>
            Execution <span class="mono">{shortID(id)}</span>
          </a>{" "}
          <span class="muted" aria-hidden="true">
            /
          </span>{" "}
          Steps
        </>
      }
      intro="The program before each line ran. Drag the slider, or press ← and →. A click on a variable tells when it changed, and why."
    >
      <Scrubber recording={recording} picked={picked} pick={pick} line={shownLine} outputs={outputSteps} />
      {problem && <Failure problem={problem} />}
      <Gaps recording={recording} />
      <div class="columns steps">
        <div class="main">
          <Panel
            title="Code"
            note={
              shownLine
                ? `line ${shownLine}, ${step > total ? "after it ran" : "before it runs"}`
                : "the line is not in this code"
            }
          >
            <Code code={record.code ?? ""} marks={[]} label="Code" current={shownLine} picked={picked} onLine={pick} />
          </Panel>
          <Find path={path} step={addressed} found={go} />
          {opened.current && <Contents key={opened.current.name} path={path} {...opened.current} />}
          {chosen && <Story path={path} name={chosen} step={addressed} go={go} />}
          <StepOutputs outputs={outputs} step={step} go={show} />
        </div>
        <div class={isSlow ? "state late" : "state"} aria-busy={!isCurrent}>
          {values}
        </div>
      </div>
    </Page>
  );
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
