import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import type { Problem } from "../api/problem";
import type { DebugPosition, Execution, Sandbox } from "../api/records";
import { count, plural, shortID } from "../format";
import type { DebugEditor } from "../parts/debug_editor";
import { Failure, Loading } from "../parts/feedback";
import { hasKeys } from "../parts/has_keys";
import { Panel, TextPanel } from "../parts/panel";
import { parameter, setParameters } from "../router";
import { mayDebug } from "../session";
import { Page } from "../shell";
import { Breakpoints, requested } from "./debug_breakpoints";
import { Editor } from "./debug_code";
import { Console } from "./debug_console";
import { useDraft } from "./debug_draft";
import { DebugSession, type RequestedBreakpoint } from "./debug_session";
import { VariableTable } from "./debug_table";
import { Toolbar, useDebugKeys } from "./debug_toolbar";
import { Scopes } from "./debug_variables";
import { Outputs } from "./execution_outputs";

// Debugger starts code in a debug session, or shows the session that the address names.
export function Debugger() {
  if (mayDebug.value) return <OpenDebugger />;
  return (
    <Page title="Debugger">
      <p class="notice">An agent's key cannot debug code. Sign in with the key of a developer or an admin.</p>
    </Page>
  );
}

function OpenDebugger() {
  const id = parameter("session");
  const session = useMemo(() => (id ? new DebugSession(id) : undefined), [id]);
  useEffect(() => {
    if (!session) return;
    void session.attach();
    return () => session.detach();
  }, [session]);
  const { draft, setDraft, loads, isLoading, stopsAtEntry, setStopsAtEntry, start, isStarting, problem, failedLine } =
    useDraft(session);
  const editor = useRef<DebugEditor | undefined>(undefined);

  const breakpoints: RequestedBreakpoint[] = session ? session.breakpoints.value : isLoading ? [] : draft.breakpoints;
  const setBreakpoints = (list: RequestedBreakpoint[]) => {
    const wanted = list.toSorted((a, b) => a.line - b.line).map(requested);
    setDraft((before) => ({ ...before, breakpoints: wanted }));
    if (session) void session.setBreakpoints(wanted);
  };
  const toggle = (line: number) =>
    setBreakpoints(
      breakpoints.some((b) => b.line === line)
        ? breakpoints.filter((b) => b.line !== line)
        : [...breakpoints, { line }],
    );
  const position = session?.position.value;
  const edit = async () => {
    if (session) {
      setDraft({ code: session.code.value ?? draft.code, breakpoints: draft.breakpoints });
      await session.close();
    }
    setParameters({ session: "", execution: "" });
  };
  const proceed = () => (session ? position?.state === "stopped" && session.move("continue") : start());
  useDebugKeys({
    session,
    proceed,
    toggleBreakpoint: () => {
      const line = editor.current?.cursorLine() ?? position?.line_number;
      if (line) toggle(line);
    },
  });

  const failure = problem ?? session?.problem.value;
  const isGone = session !== undefined && !position && failure?.status === 404;
  const code = session ? session.code.value : isLoading ? undefined : draft.code;
  return (
    <Page
      title="Debugger"
      actions={<Where position={position} />}
      intro="Stop code at a line, look at its variables, click a value to change it, and step forward or back."
    >
      <Toolbar
        session={session}
        proceed={proceed}
        edit={edit}
        isStarting={isStarting}
        mayStart={!isStarting && Boolean(code?.trim())}
      />
      {!session && failedLine > 0 && breakpoints.some((b) => b.line === failedLine) && (
        <p class="notice">
          The run failed in line {failedLine}: there is a breakpoint. Start it, and look at the values there.
        </p>
      )}
      <Notices session={session} failure={failure} isGone={isGone} edit={edit} />
      <div class="columns debug">
        <div class="main">
          {!session && <Options stopsAtEntry={stopsAtEntry} setStopsAtEntry={setStopsAtEntry} />}
          <Panel
            title="Code"
            note={
              position?.line_number
                ? `line ${position.line_number}, before it runs`
                : `click next to a line${hasKeys ? ", or press F9," : ""} for a breakpoint`
            }
          >
            {code === undefined ? (
              !isGone && <Loading what={session ? "the session" : "the code"} />
            ) : (
              <Editor
                editor={editor}
                code={code}
                source={session ? session.id : `draft ${loads}`}
                isEditable={!session}
                breakpoints={breakpoints}
                line={
                  session?.frames.value.find((f) => f.id === session.frame.value)?.line ?? position?.line_number ?? 0
                }
                onToggle={toggle}
                onDraft={setDraft}
              />
            )}
          </Panel>
          {session && <VariableTable session={session} />}
          {session && <Console session={session} />}
          {session?.result.value && <Results of={session.result.value} />}
        </div>
        <div class="state">
          {session && <Calls session={session} />}
          {session && <Scopes session={session} />}
          <Breakpoints list={breakpoints} change={setBreakpoints} />
        </div>
      </div>
    </Page>
  );
}

// Notices says why something failed, or that the session or its program has ended.
function Notices(props: {
  session: DebugSession | undefined;
  failure: Problem | undefined;
  isGone: boolean;
  edit: () => unknown;
}) {
  const { session, failure, isGone, edit } = props;
  const execution = parameter("execution");
  const state = session?.position.value?.state;
  return (
    <>
      {failure && !isGone && <Failure problem={failure} />}
      {failure?.status === 409 && session && /\bdrive\b/.test(failure.detail) && (
        <p>
          <button onClick={() => session.drive()}>Take over control</button>
        </p>
      )}
      {isGone && (
        <div class="notice" role="alert">
          <strong>This debug session is over.</strong>
          <p>
            A session ends when nobody uses it.{" "}
            {execution && (
              <>
                Its run is kept: <RunLinks id={execution} />.
              </>
            )}
          </p>
          <button onClick={edit}>Debug the code again</button>
        </div>
      )}
      {state === "ended" && session && (
        <div class="notice" role="status">
          <strong>The program has ended{session.result.value ? `: ${session.result.value.status}` : ""}.</strong>
          {session.result.value?.error && <p class="mono">{session.result.value.error}</p>}
          <p>
            You can step back through it here, or see <RunLinks id={session.executionID} />.
          </p>
        </div>
      )}
    </>
  );
}

function Where({ position }: { position: DebugPosition | undefined }) {
  if (!position) return null;
  const { state, reason, step, total_steps: total, live } = position;
  const why = state !== "ended" && reason && (live || reason !== "step") ? `: ${reason}` : "";
  const words =
    state === "running" ? "running" : `${state === "ended" ? "ended" : live ? "stopped" : "at an earlier step"}${why}`;
  return (
    <span class={`status ${state === "running" ? "busy" : live ? "good" : ""}`} role="status">
      <span class="dot" aria-hidden="true" /> {words}
      {step ? `, step ${count(step)} of ${plural(total, "step")}` : ""}
    </span>
  );
}

function RunLinks({ id }: { id: string }) {
  const path = `/ui/executions/${encodeURIComponent(id)}`;
  return (
    <>
      <a href={`${path}/steps`}>its recording</a> and{" "}
      <a href={path}>
        the execution <span class="mono">{shortID(id)}</span>
      </a>
    </>
  );
}

// Options are those of a session that has not begun.
function Options({
  stopsAtEntry,
  setStopsAtEntry,
}: {
  stopsAtEntry: boolean;
  setStopsAtEntry: (value: boolean) => void;
}) {
  const [sandboxes, setSandboxes] = useState<Sandbox[]>([]);
  const chosen = parameter("sandbox");
  useEffect(() => {
    const request = new AbortController();
    get<{ sandboxes: Sandbox[] | null }>("/sandboxes", { status: "active", limit: 50 }, request.signal).then(
      (answer) => setSandboxes(answer.sandboxes ?? []),
      () => {},
    ); // a fresh sandbox can be chosen without the list
    return () => request.abort();
  }, []);
  const known = sandboxes.some((s) => s.sandbox_id === chosen);
  return (
    <div class="filters">
      <label class="field">
        Sandbox{" "}
        <select value={chosen} onChange={(event) => setParameters({ sandbox: event.currentTarget.value }, true)}>
          <option value="">a fresh one</option>
          {chosen && !known && <option value={chosen}>{shortID(chosen)}</option>}
          {sandboxes.map((s) => (
            <option key={s.sandbox_id} value={s.sandbox_id}>
              {shortID(s.sandbox_id)}, of {s.user_id}
            </option>
          ))}
        </select>
      </label>
      <label class="field check">
        <input
          type="checkbox"
          checked={stopsAtEntry}
          onChange={(event) => setStopsAtEntry(event.currentTarget.checked)}
        />{" "}
        Stop at the first line
      </label>
    </div>
  );
}

function Calls({ session }: { session: DebugSession }) {
  const frames = session.frames.value;
  if (frames.length === 0) return null;
  return (
    <Panel title="Call stack" note="innermost first">
      <ol class="calls">
        {frames.map((frame) => (
          <li key={frame.id}>
            <button
              class="row-button"
              aria-pressed={frame.id === session.frame.value}
              onClick={() => session.choose(frame.id)}
            >
              <strong>{frame.name}</strong> <span class="muted">line {frame.line}</span>
            </button>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

// Results shows what the ended run gave, besides what it printed.
function Results({ of }: { of: Execution }) {
  const value = of.result === null || of.result === undefined ? "" : JSON.stringify(of.result, null, 2);
  return (
    <>
      {value && of.outputs.length === 0 && <TextPanel title="Result" text={value} />}
      <Outputs outputs={of.outputs} />
    </>
  );
}
