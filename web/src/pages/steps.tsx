import { Fragment } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Execution, Output, StepFrame, StepVariable, StepView, VariableChange, Why } from "../api/records";
import { count, plural, shortID } from "../format";
import { Code } from "../parts/code";
import { useDelay } from "../parts/delay";
import { Empty, Failure, Loading } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { parameter, setParameters } from "../router";
import { Icon, Page } from "../shell";
import { LineRuns, Ticks } from "./steps_axis";
import { firstAtLeast, StepLines } from "./steps_lines";
import { StepOutputs, stepsOf } from "./steps_outputs";
import { Contents } from "./steps_value";
import { type ShownStep, StepViews } from "./steps_views";

const noOutputs: Output[] = [];

const title = (id: string) => `Steps of ${shortID(id)}`;

// addressDelay is the time after the last move at which the address gets the step, in milliseconds. Browsers limit how
// often an address may change, and the answers for one step only are loaded when the slider rests.
const addressDelay = 200;

// slowDelay is the time in milliseconds after which the values of another step are shown as such. Most values are there sooner.
const slowDelay = 150;

// longValue is the length in characters from which on a value does not fit into a heading.
const longValue = 60;

// Steps shows a recorded execution at one of its steps, and moves through them both ways. The step number and the
// current line follow the pointer at once, from the lines of all steps; the values follow when they arrive.
export function Steps({ id }: { id: string }) {
  const path = `/executions/${encodeURIComponent(id)}`;
  const [record, setRecord] = useState<Execution>();
  const [loaded, setLoaded] = useState<StepLines>();
  const [shown, setShown] = useState<ShownStep>();
  const [missing, setMissing] = useState(0);
  const [problem, setProblem] = useState<Problem>();
  const addressed = Math.max(1, Math.floor(Number(parameter("step"))) || 1);
  const [step, setStep] = useState(addressed);
  const timer = useRef(0);
  const fail = (thrown: unknown) => {
    if (!isAborted(thrown)) setProblem(Problem.from(thrown));
  };
  const views = useMemo(
    () =>
      new StepViews(
        path,
        (at, found) => {
          setMissing(found ? 0 : at);
          if (found) setShown(found);
          setProblem(undefined);
        },
        fail,
      ),
    [path],
  );
  const total = loaded?.total ?? shown?.view.total_steps ?? 0;
  const lines = useMemo(() => loaded ?? StepLines.without(total), [loaded, total]);
  const picked = Math.floor(Number(parameter("line"))) || 0;

  useEffect(() => {
    const request = new AbortController();
    get<Execution>(path, {}, request.signal).then(setRecord, fail);
    return () => {
      request.abort();
      window.clearTimeout(timer.current);
      views.stop();
    };
  }, [views]);
  // The lines of a long recording take the service a moment. The first values come before them.
  const isShown = shown !== undefined || missing > 0;
  useEffect(() => {
    if (!isShown) return;
    const request = new AbortController();
    StepLines.load(path, request.signal).then(setLoaded, fail);
    return () => request.abort();
  }, [path, isShown]);
  useEffect(() => {
    if (timer.current) return; // the person moves on
    setStep(addressed);
  }, [addressed]);
  useEffect(() => views.want(step), [views, step]);

  // Keys can come faster than the page is drawn.
  const at = useRef(step);
  at.current = step;
  const go = (to: number) => {
    const next = Math.max(1, Math.min(total + 1, to));
    if (next === at.current) return;
    at.current = next;
    setStep(next);
    views.want(next);
    window.clearTimeout(timer.current);
    const address = () => setParameters({ step: String(next), frame: "" }, true);
    if (!timer.current) address(); // a single move
    timer.current = window.setTimeout(() => {
      timer.current = 0;
      address();
    }, addressDelay);
  };
  const position = lines.positionOf(step);
  const outputs = record?.outputs ?? noOutputs;
  const outputSteps = useMemo(() => stepsOf(outputs), [outputs]);
  const latestGo = useRef(go);
  latestGo.current = go;
  const show = useCallback((to: number) => latestGo.current(to), []);
  const goPosition = (to: number) => go(lines.stepAt(to));
  const pick = (line: number) => setParameters({ line: line > 0 && line !== picked ? String(line) : "" }, true);
  const line = lines.lineOf(step);
  const goRun = (direction: 1 | -1) => {
    const lineRuns = lines.runsOf(picked);
    const from = lines.positionOf(at.current);
    const index = direction > 0 ? firstAtLeast(lineRuns, from + 1) : firstAtLeast(lineRuns, from) - 1;
    const to = lineRuns[index];
    if (to !== undefined) goPosition(to);
  };
  useEffect(() => {
    const move = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        target.matches("input, select, textarea, .cm-content, .editor")
      )
        return;
      const by = event.shiftKey ? 10 : 1;
      const commands: Record<string, () => void> = {
        ArrowLeft: () => goPosition(lines.positionOf(at.current) - by),
        ArrowRight: () => goPosition(lines.positionOf(at.current) + by),
        Home: () => goPosition(0),
        End: () => goPosition(lines.count - 1),
        h: () => line && pick(line),
        n: () => goRun(1),
        p: () => goRun(-1),
      };
      const command = commands[event.key];
      if (!command) return;
      event.preventDefault();
      command();
    };
    document.addEventListener("keydown", move);
    return () => document.removeEventListener("keydown", move);
  });

  const frames = shown?.view.frames ?? [];
  const frame = frames[Math.min(frames.length - 1, Number(parameter("frame")) || 0)];
  const isCurrent = shown?.view.step === step;
  const isSlow = useDelay(!isCurrent, slowDelay);
  const opened = useRef<{ step: number; name: string; reference: number; length: number | undefined } | undefined>(
    undefined,
  );
  // While only the step moves, the values need no work.
  const values = useMemo(() => shown && <Values shown={shown} frames={frames} frame={frame} />, [shown, frame]);

  const back = <a href={`/ui/executions/${encodeURIComponent(id)}`}>Back to the execution</a>;
  if (problem && !isShown) {
    return (
      <Page title={title(id)}>
        {problem.status === 404 ? (
          <Empty title="There is no recording of this execution.">
            A run has one if it was debugged, or began with <em>Run and record</em> in{" "}
            <a href="/ui/play">the playground</a> or with <code>"record": true</code>. {back}
          </Empty>
        ) : (
          <>
            <Failure problem={problem} />
            <p>{back}</p>
          </>
        )}
      </Page>
    );
  }
  if (!isShown || !record)
    return (
      <Page title={title(id)}>
        <Loading what="the recording" />
      </Page>
    );
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
      <div class="scrubber panel" role="group" aria-label="Step">
        <button
          aria-label="First step"
          title="First step (Home)"
          disabled={position <= 0}
          onClick={() => goPosition(0)}
        >
          <Icon of="M4 3v10M13 3L6 8l7 5z" />
        </button>
        <button
          aria-label="Step back"
          title="Step back (←, Shift for ten)"
          disabled={position <= 0}
          onClick={() => goPosition(position - 1)}
        >
          <Icon of="M12 3L5 8l7 5z" />
        </button>
        <button
          aria-label="Step forward"
          title="Step forward (→, Shift for ten)"
          disabled={position >= lines.count - 1}
          onClick={() => goPosition(position + 1)}
        >
          <Icon of="M4 3l7 5-7 5z" />
        </button>
        <button
          aria-label="End of the run"
          title="End of the run (End)"
          disabled={position >= lines.count - 1}
          onClick={() => goPosition(lines.count - 1)}
        >
          <Icon of="M12 3v10M3 3l7 5-7 5z" />
        </button>
        <div class="step-axis">
          <Ticks lines={lines} line={picked} outputs={outputSteps} />
          <input
            type="range"
            aria-label="Step"
            min={1}
            max={lines.count}
            value={position + 1}
            aria-valuetext={step > total ? "End" : `Step ${step}, line ${shownLine}`}
            onInput={(event) => goPosition(Number(event.currentTarget.value) - 1)}
          />
        </div>
        <output>
          {step > total ? "end, after" : "step"} {count(Math.min(step, total))} of {count(total)}
        </output>
        {loaded && <LineRuns lines={lines} line={picked} step={step} go={go} pick={pick} />}
      </div>
      {problem && <Failure problem={problem} />}
      {lines.gaps.map((gap) => (
        <p key={gap.first} class="notice warn">
          Steps {count(gap.first)} to {count(gap.last)} were not recorded: {gap.reason}. The axis has a mark there.
          {missing > 0 && missing >= gap.first && missing <= gap.last && (
            <Jump to={lines.stepAt(lines.positionOf(missing))} go={go} />
          )}
        </p>
      ))}
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

function Values({ shown, frames, frame }: { shown: ShownStep; frames: StepFrame[]; frame: StepFrame | undefined }) {
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

// Find goes to the next step at which a condition holds.
function Find({ path, step, found }: { path: string; step: number; found: (step: number) => void }) {
  const [condition, setCondition] = useState("");
  const [said, setSaid] = useState("");
  const [running, setRunning] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!condition.trim()) return;
    setRunning(true);
    try {
      const answer = await get<{ step: number }>(`${path}/find`, { condition, from: step + 1 });
      setSaid(answer.step ? "" : "It does not hold at any later step.");
      if (answer.step) found(answer.step);
    } catch (thrown) {
      setSaid(Problem.from(thrown).message);
    }
    setRunning(false);
  };
  return (
    <form class="panel form" onSubmit={submit} aria-label="Find a step">
      <label class="grow">
        Next step at which this holds
        <input
          class="mono"
          value={condition}
          placeholder="total > 100 and name in names"
          spellcheck={false}
          onInput={(event) => setCondition(event.currentTarget.value)}
        />
      </label>
      <button disabled={running}>{running ? "Searching…" : "Find"}</button>
      {said && (
        <p class="field-error" role="alert">
          {said}
        </p>
      )}
    </form>
  );
}

const maxChanges = 100; // of one request

// Story tells when a variable changed, and why it has its value.
function Story({ path, name, step, go }: { path: string; name: string; step: number; go: (step: number) => void }) {
  const [changes, setChanges] = useState<VariableChange[]>();
  const [hasMore, setHasMore] = useState(false);
  const [why, setWhy] = useState<Why>();
  const [problem, setProblem] = useState<Problem>();
  const current = useRef<AbortController>(undefined);
  const load = (from: number, before: VariableChange[]) => {
    const { signal } = current.current!;
    get<{ changes: VariableChange[] | null }>(
      `${path}/variables/${encodeURIComponent(name)}/changes`,
      { from, limit: maxChanges },
      signal,
    ).then(
      (answer) => {
        const found = answer.changes ?? [];
        setChanges([...before, ...found]);
        setHasMore(found.length === maxChanges);
      },
      (thrown: unknown) => isAborted(thrown) || setProblem(Problem.from(thrown)),
    );
  };
  useEffect(() => {
    const request = new AbortController();
    current.current = request;
    setChanges(undefined);
    setProblem(undefined);
    load(1, []);
    return () => request.abort();
  }, [path, name]);
  useEffect(() => {
    const request = new AbortController();
    setWhy(undefined);
    // A variable that does not exist yet has no reason.
    get<Why>(`${path}/why`, { name, step }, request.signal).then(setWhy, () => {});
    return () => request.abort();
  }, [path, name, step]);
  return (
    <>
      {problem && <Failure problem={problem} />}
      {why && (
        <Panel
          title={why.value.length > longValue ? `Why ${why.name} has this value` : `Why ${why.name} is ${why.value}`}
        >
          <ol class="story">
            {(why.findings ?? []).map((finding, index) => (
              <li key={`finding-${index}`}>
                <Jump to={finding.step} go={go} /> <span class="why">{finding.text}</span>
              </li>
            ))}
            {(why.steps ?? []).map((cause) => (
              <li key={`${cause.step} ${cause.name}`}>
                <Jump to={cause.step} go={go} /> <span class="muted">line {cause.line_number}</span>{" "}
                <code>{cause.line_code.trim()}</code> <Role of={cause} />
                {(cause.reads ?? []).length > 0 && (
                  <span class="muted">
                    , from{" "}
                    {cause.reads!.map((read, index) => (
                      <Fragment key={read.name}>
                        {index > 0 && ", "}
                        <code>
                          {read.name} = {read.value}
                        </code>
                      </Fragment>
                    ))}
                  </span>
                )}
                {cause.first_value && (
                  <span class="muted">
                    ; the line ran {cause.times} times and first set <code>{cause.first_value}</code>
                  </span>
                )}
              </li>
            ))}
          </ol>
          {(why.limits ?? []).map((limit) => (
            <p key={limit} class="body muted">
              {limit}
            </p>
          ))}
        </Panel>
      )}
      {changes && (
        <Panel
          title={`History of ${name}`}
          note={hasMore ? `the first ${plural(changes.length, "change")}` : plural(changes.length, "change")}
        >
          {changes.length === 0 && <p class="body muted">It did not change as a global variable.</p>}
          <ol class="story">
            {changes.map((change) => (
              <li key={change.seen_at} class={change.seen_at <= step ? "" : "muted"}>
                <Jump to={change.step || change.seen_at} go={go} /> <span class="muted">line {change.line_number}</span>{" "}
                <code>{change.line_code.trim()}</code> <span class="muted">set</span>{" "}
                <code>
                  {name} = {change.value}
                </code>
                {change.step > 0 && change.seen_at !== change.step && (
                  <span class="muted">
                    , visible from <Jump to={change.seen_at} go={go} />
                  </span>
                )}
              </li>
            ))}
          </ol>
          {hasMore && (
            <p class="body">
              <button onClick={() => load(changes.at(-1)!.seen_at + 1, changes)}>Show more changes</button>
            </p>
          )}
        </Panel>
      )}
    </>
  );
}

// Role says what the line of a step did. A condition sets no variable.
function Role({ of: { role, name, value } }: { of: NonNullable<Why["steps"]>[number] }) {
  if (role === "condition") return <span class="muted">decided what ran</span>;
  return (
    <>
      <span class="muted">{role}</span>
      {(name || value) && (
        <>
          {" "}
          <code>{name ? `${name} = ${value}` : value}</code>
        </>
      )}
    </>
  );
}

function Jump({ to, go }: { to: number; go: (step: number) => void }) {
  return (
    <button class="link" onClick={() => go(to)}>
      step {count(to)}
    </button>
  );
}
