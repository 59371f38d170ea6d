import type { StepFrame, StepVariable, StepView } from "../api/records";
import { asText, count } from "../format";
import { Panel } from "../parts/panel";
import { parameter, setParameters } from "../router";
import { clipped } from "../why/answer";
import type { ShownStep } from "./steps_views";

// Values shows the calls and the variables of a step.
export function Values({
  shown,
  frames,
  frame,
  result,
}: {
  shown: ShownStep;
  frames: StepFrame[];
  frame: StepFrame | undefined;
  result: unknown; // at the end of the run, or undefined
}) {
  return (
    <>
      {frames.length > 1 && <Calls frames={frames} current={frame} />}
      {frame && (frame.variables?.length || frame.unread) ? (
        <Variables
          title={`Variables of ${frame.function}`}
          of={frame.variables ?? []}
          total={frame.total_variables}
          before={frameOf(shown.before, frame)?.variables}
          unread={frame.unread}
        />
      ) : null}
      <Variables
        title="Global variables"
        result={result}
        of={shown.view.globals ?? []}
        total={shown.view.total_globals}
        before={shown.before && (shown.before.globals ?? [])}
      />
    </>
  );
}

function frameOf(view: StepView | undefined, frame: StepFrame): StepFrame | undefined {
  return view?.frames?.find((other) => other.frame === frame.frame);
}

function Calls({ frames, current }: { frames: StepFrame[]; current: StepFrame | undefined }) {
  return (
    <Panel title="Calls" note="innermost first">
      <ol class="calls">
        {frames.map((frame, index) => (
          <li key={frame.frame}>
            <button
              class="row-button"
              aria-pressed={frame === current}
              onClick={() => setParameters({ frame: index ? String(index) : "" }, true)}
            >
              <strong>{frame.function}</strong> <span class="muted">line {frame.line_number}</span>{" "}
              <code>{frame.line_code.trim()}</code>
            </button>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

// shownVariables leaves out the variable that is the result of a run where the result itself is shown.
export function shownVariables(variables: StepVariable[], hasResult: boolean): StepVariable[] {
  return hasResult ? variables.filter(({ name }) => name !== "__result__") : variables;
}

// Variables shows the variables of a frame, with those marked that the step before changed.
function Variables(props: {
  title: string;
  of: StepVariable[];
  total: number;
  before: StepVariable[] | null | undefined;
  unread?: string | undefined;
  result?: unknown;
}) {
  const old = props.before && new Map(props.before.map((v) => [v.name, v.value]));
  const of = shownVariables(props.of, props.result !== undefined);
  return (
    <Panel
      title={props.title}
      note={props.total > props.of.length ? `${props.of.length} of ${count(props.total)}` : undefined}
    >
      {props.unread && <p class="body muted">{props.unread}</p>}
      {of.length === 0 && !props.unread && props.result === undefined && <p class="body muted">There are none yet.</p>}
      <ul class="variables">
        {props.result !== undefined && !of.some((v) => v.name === "result") && (
          <li>
            <Row name="result" value={clipped(asText(props.result), 300)} type="result of the run" mark="" />
          </li>
        )}
        {of.map((v) => {
          const changed = old ? old.get(v.name) !== v.value : false;
          return (
            <li key={v.name} class={changed ? "changed" : ""}>
              <Row
                name={v.name}
                value={v.value}
                type={v.type}
                mark={changed ? (old?.has(v.name) ? "changed" : "new") : ""}
              />
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}

// Row is a variable that a click chooses.
function Row({ name, value, type, mark }: { name: string; value: string; type: string; mark: string }) {
  const isChosen = parameter("name") === name;
  return (
    <button
      class="row-button"
      aria-pressed={isChosen}
      title={`${type}: show why, and when it changed`}
      onClick={() => setParameters({ name: isChosen ? "" : name, asked: "" }, true)}
    >
      <code class="name">{name}</code>
      <code class="value">{value}</code>
      <span class="muted">
        {mark && <strong class="mark">{mark} </strong>}
        {type}
      </span>
    </button>
  );
}
