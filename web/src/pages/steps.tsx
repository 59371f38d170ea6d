import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Execution, StepFrame, StepVariable, StepView, VariableChange, Why } from "../api/records";
import { count, plural, shortID } from "../format";
import { Code } from "../parts/code";
import { Empty, Failure, Loading } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { parameter, setParameters } from "../router";
import { Icon, Page } from "../shell";
import { StepViews } from "./steps_views";

const title = (id: string) => `Steps of ${shortID(id)}`;

// Steps shows a recorded execution at one of its steps, and moves through them both ways.
export function Steps({ id }: { id: string }) {
  const path = `/executions/${encodeURIComponent(id)}`;
  const views = useMemo(() => new StepViews(path), [path]);
  const [record, setRecord] = useState<Execution>();
  const [shown, setShown] = useState<{ view: StepView; before: StepView | undefined }>();
  const [problem, setProblem] = useState<Problem>();
  const step = Math.max(1, Number(parameter("step")) || 1);
  const total = shown?.view.total_steps ?? 0;
  const fail = (thrown: unknown) => {
    if (!isAborted(thrown)) setProblem(Problem.from(thrown));
  };

  useEffect(() => {
    const request = new AbortController();
    get<Execution>(path, {}, request.signal).then(setRecord, fail);
    return () => {
      request.abort();
      views.stop();
    };
  }, [views]);
  useEffect(() => {
    views.load(step).then((loaded) => {
      setShown(loaded);
      setProblem(undefined);
    }, fail);
  }, [views, step]);

  const go = (to: number) => {
    const next = Math.max(1, Math.min(total || 1, to));
    if (next !== step) setParameters({ step: String(next), frame: "" }, true);
  };
  useEffect(() => {
    const move = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, select, textarea, .cm-content, .editor")) return;
      const to = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 1, End: total }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go(event.shiftKey && event.key.startsWith("Arrow") ? step + 10 * (to - step) : to);
    };
    document.addEventListener("keydown", move);
    return () => document.removeEventListener("keydown", move);
  });

  const back = <a href={`/ui/executions/${encodeURIComponent(id)}`}>The execution</a>;
  if (problem && !shown) {
    return (
      <Page title={title(id)}>
        {problem.status === 404
          ? <Empty title="There is no recording of this execution.">{problem.detail} {back}</Empty>
          : <><Failure problem={problem} /><p>{back}</p></>}
      </Page>
    );
  }
  if (!shown || !record) return <Page title={title(id)}><Loading what="the recording" /></Page>;
  const frames = shown.view.frames ?? [];
  const frame = frames[Math.min(frames.length - 1, Number(parameter("frame")) || 0)];
  return (
    <Page title={title(id)} heading={<>
      <a class="crumb" href={`/ui/executions/${encodeURIComponent(id)}`}>Execution <span class="mono">{shortID(id)}</span></a>{" "}
      <span class="muted" aria-hidden="true">/</span> Steps
    </>}>
      <div class="scrubber panel" role="group" aria-label="Step">
        <button aria-label="First step" title="First step (Home)" disabled={step <= 1} onClick={() => go(1)}><Icon of="M4 3v10M13 3L6 8l7 5z" /></button>
        <button aria-label="Step back" title="Step back (←, Shift for ten)" disabled={step <= 1} onClick={() => go(step - 1)}><Icon of="M12 3L5 8l7 5z" /></button>
        <button aria-label="Step forward" title="Step forward (→, Shift for ten)" disabled={step >= total} onClick={() => go(step + 1)}><Icon of="M4 3l7 5-7 5z" /></button>
        <button aria-label="Last step" title="Last step (End)" disabled={step >= total} onClick={() => go(total)}><Icon of="M12 3v10M3 3l7 5-7 5z" /></button>
        <input type="range" aria-label="Step" min={1} max={total} value={step} onInput={(event) => go(Number(event.currentTarget.value))} />
        <output>{count(shown.view.step)} of {plural(total, "step")}</output>
      </div>
      {problem && <Failure problem={problem} />}
      <div class="columns steps">
        <div class="main">
          <Panel title="Code" note={frame && `line ${frame.line_number}, before it runs`}>
            <Code code={record.code ?? ""} marks={[]} label="Code" current={frame?.line_number ?? 0} />
          </Panel>
          <Find path={path} step={step} found={go} />
          {parameter("name") && <Story path={path} name={parameter("name")} step={step} go={go} />}
        </div>
        <div class="state">
          {frames.length > 1 && <Calls frames={frames} current={frame} />}
          {frame && (frame.variables?.length || frame.unread) ? (
            <Variables title={`Variables of ${frame.function}`} of={frame.variables ?? []} total={frame.total_variables}
              before={frameOf(shown.before, frame)?.variables} unread={frame.unread} />
          ) : null}
          <Variables title="Global variables" of={shown.view.globals ?? []} total={shown.view.total_globals}
            before={shown.before && (shown.before.globals ?? [])} />
        </div>
      </div>
    </Page>
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
            <button class="row-button" aria-pressed={frame === current} onClick={() => setParameters({ frame: index ? String(index) : "" }, true)}>
              <strong>{frame.function}</strong> <span class="muted">line {frame.line_number}</span> <code>{frame.line_code.trim()}</code>
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
    <Panel title={props.title} note={props.total > props.of.length ? `${props.of.length} of ${count(props.total)}` : undefined}>
      {props.unread && <p class="body muted">{props.unread}</p>}
      {props.of.length === 0 && !props.unread && <p class="body muted">There are none yet.</p>}
      <ul class="variables">
        {props.of.map((v) => {
          const changed = old ? old.get(v.name) !== v.value : false;
          return (
            <li key={v.name} class={changed ? "changed" : ""}>
              <button class="row-button" aria-pressed={chosen === v.name} title={`${v.type}: show when it changed, and why`}
                onClick={() => setParameters({ name: chosen === v.name ? "" : v.name }, true)}>
                <code class="name">{v.name}</code>
                <code class="value">{v.value}</code>
                <span class="muted">{changed && <strong class="mark">{old?.has(v.name) ? "changed" : "new"} </strong>}{v.type}</span>
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
      <label class="grow">Next step at which this holds
        <input class="mono" value={condition} placeholder="total > 100 and name in names" spellcheck={false}
          onInput={(event) => setCondition(event.currentTarget.value)} />
      </label>
      <button disabled={running}>{running ? "Searching…" : "Find"}</button>
      {said && <p class="field-error" role="alert">{said}</p>}
    </form>
  );
}

// Story tells when a variable changed, and why it has its value.
function Story({ path, name, step, go }: { path: string; name: string; step: number; go: (step: number) => void }) {
  const [changes, setChanges] = useState<VariableChange[]>();
  const [why, setWhy] = useState<Why>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    const request = new AbortController();
    const fail = (thrown: unknown) => isAborted(thrown) || setProblem(Problem.from(thrown));
    setChanges(undefined);
    setProblem(undefined);
    get<{ changes: VariableChange[] | null }>(`${path}/variables/${encodeURIComponent(name)}/changes`, {}, request.signal)
      .then((answer) => setChanges(answer.changes ?? []), fail);
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
        <Panel title={`Why ${why.name} is ${why.value}`}>
          <ol class="story">
            {(why.findings ?? []).map((finding, index) => (
              <li key={`finding-${index}`}><Jump to={finding.step} go={go} /> <span class="why">{finding.text}</span></li>
            ))}
            {(why.steps ?? []).map((cause) => (
              <li key={`${cause.step} ${cause.name}`}>
                <Jump to={cause.step} go={go} /> <span class="muted">line {cause.line_number}</span> <code>{cause.line_code.trim()}</code>{" "}
                <span class="muted">{cause.role}</span> <code>{cause.name} = {cause.value}</code>
              </li>
            ))}
          </ol>
        </Panel>
      )}
      {changes && (
        <Panel title={`History of ${name}`} note={plural(changes.length, "change") + (changes.length >= 100 ? " or more" : "")}>
          {changes.length === 0 && <p class="body muted">It did not change as a global variable.</p>}
          <ol class="story">
            {changes.map((change) => (
              <li key={change.seen_at} class={change.seen_at <= step ? "" : "muted"}>
                <Jump to={change.seen_at} go={go} /> <code>{change.value}</code>{" "}
                <span class="muted">by line {change.line_number}</span> <code>{change.line_code.trim()}</code>
              </li>
            ))}
          </ol>
        </Panel>
      )}
    </>
  );
}

function Jump({ to, go }: { to: number; go: (step: number) => void }) {
  return <button class="link" onClick={() => go(to)}>step {count(to)}</button>;
}
