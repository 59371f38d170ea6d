import type { StepFrame, StepVariable, StepView } from "../api/records";
import { count } from "../format";
import { Panel } from "../parts/panel";
import { parameter, setParameters } from "../router";
import type { ShownStep } from "./steps_views";

// Values shows the calls and the variables of a step.
export function Values({
  shown,
  frames,
  frame,
}: {
  shown: ShownStep;
  frames: StepFrame[];
  frame: StepFrame | undefined;
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

// Variables shows the variables of a frame, with those marked that the step before changed.
function Variables(props: {
  title: string;
  of: StepVariable[];
  total: number;
  before: StepVariable[] | null | undefined;
  unread?: string | undefined;
}) {
  const old = props.before && new Map(props.before.map((v) => [v.name, v.value]));
  const chosen = parameter("name");
  return (
    <Panel
      title={props.title}
      note={props.total > props.of.length ? `${props.of.length} of ${count(props.total)}` : undefined}
    >
      {props.unread && <p class="body muted">{props.unread}</p>}
      {props.of.length === 0 && !props.unread && <p class="body muted">There are none yet.</p>}
      <ul class="variables">
        {props.of.map((v) => {
          const changed = old ? old.get(v.name) !== v.value : false;
          return (
            <li key={v.name} class={changed ? "changed" : ""}>
              <button
                class="row-button"
                aria-pressed={chosen === v.name}
                title={`${v.type}: show when it changed, and why`}
                onClick={() => setParameters({ name: chosen === v.name ? "" : v.name }, true)}
              >
                <code class="name">{v.name}</code>
                <code class="value">{v.value}</code>
                <span class="muted">
                  {changed && <strong class="mark">{old?.has(v.name) ? "changed" : "new"} </strong>}
                  {v.type}
                </span>
              </button>
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}
