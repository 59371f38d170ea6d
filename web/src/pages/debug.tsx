import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, post, remove } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { DebugPosition, DebugSessionRecord, Execution, Sandbox } from "../api/records";
import { count, plural, shortID } from "../format";
import type { DebugEditor } from "../parts/debug_editor";
import { readDraft, writeDraft } from "../parts/draft";
import { Failure, Loading } from "../parts/feedback";
import { Panel, TextPanel } from "../parts/panel";
import { parameter, setParameters } from "../router";
import { mayDebug } from "../session";
import { Icon, Page } from "../shell";
import { Console } from "./debug_console";
import { DebugSession, type Move, type RequestedBreakpoint } from "./debug_session";
import { VariableTable } from "./debug_table";
import { Scopes } from "./debug_variables";
import { Outputs } from "./execution_outputs";

const example = `def double(n):
    return n * 2

total = 0
for i in range(4):
    total += double(i)
total
`;

interface Draft {
  code: string;
  breakpoints: RequestedBreakpoint[];
}

function keptDraft(): Draft {
  try {
    const draft = JSON.parse(readDraft("debug")) as Draft;
    if (typeof draft.code === "string" && Array.isArray(draft.breakpoints)) return draft;
  } catch {
    // there is none
  }
  return { code: example, breakpoints: [] };
}

// requested returns what the service takes of a breakpoint: each request replaces all of them.
function requested({ line, condition, hitCondition, logMessage }: RequestedBreakpoint): RequestedBreakpoint {
  return {
    line,
    ...(condition && { condition }),
    ...(hitCondition && { hitCondition }),
    ...(logMessage && { logMessage }),
  };
}

const toStart = "M5 3l8 5-8 5z";
const commands: { move: Move; name: string; keys: string; icon: string }[] = [
  { move: "next", name: "Step over", keys: "F10", icon: "M2 8a6 6 0 0111-2M13 2v4H9M8 12v.5" },
  { move: "stepIn", name: "Step into", keys: "F11", icon: "M8 2v8M5 7l3 3 3-3M8 13v.5" },
  { move: "stepOut", name: "Step out", keys: "Shift+F11", icon: "M8 10V2M5 5l3-3 3 3M8 13v.5" },
  { move: "stepBack", name: "Step back", keys: "Alt+F10", icon: "M14 8A6 6 0 003 6M3 2v4h4M8 12v.5" },
  { move: "reverseContinue", name: "Continue back", keys: "Alt+F5", icon: "M11 3L3 8l8 5z" },
];

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
  const [draft, setDraft] = useState(keptDraft);
  const [loads, setLoads] = useState(0); // counts the codes that did not come from the editor
  const [stopsAtEntry, setStopsAtEntry] = useState(true);
  const [starting, setStarting] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const editor = useRef<DebugEditor | undefined>(undefined);
  const execution = parameter("execution");
  const [context, setContext] = useState<{ execution: string; of: string; values: Record<string, unknown> }>();
  const isLoading = !session && execution !== "" && context?.execution !== execution;

  useEffect(() => {
    if (!session) return;
    void session.attach();
    return () => session.detach();
  }, [session]);
  // The address can name an execution. If it names no session, the editor shows the code of that execution, and no other
  // code until it is there: a breakpoint in that would be lost.
  useEffect(() => {
    if (session || !execution) return;
    const request = new AbortController();
    get<Execution>(`/executions/${encodeURIComponent(execution)}`, {}, request.signal).then(
      (record) => {
        setContext({ execution, of: record.code ?? "", values: record.context ?? {} });
        setLoads((before) => before + 1);
        setDraft((before) => (before.code === record.code ? before : { code: record.code ?? "", breakpoints: [] }));
      },
      (thrown) => {
        if (isAborted(thrown)) return;
        setContext({ execution, of: "", values: {} });
        setProblem(Problem.from(thrown));
      },
    );
    return () => request.abort();
  }, [session, execution]);
  useEffect(() => writeDraft("debug", JSON.stringify(draft)), [draft]);

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
  const state = session ? position?.state : "editing";

  const start = async () => {
    if (starting || isLoading) return;
    setStarting(true);
    setProblem(undefined);
    let fresh = ""; // the sandbox that this start created
    try {
      let sandbox = parameter("sandbox");
      if (!sandbox) sandbox = fresh = (await post<{ sandbox_id: string }>("/sandbox/create", {})).sandbox_id;
      const values = context?.of === draft.code ? context.values : {};
      const opened = await post<DebugSessionRecord>(`/sandbox/${encodeURIComponent(sandbox)}/debug/sessions?wait=0`, {
        code: draft.code,
        breakpoints: draft.breakpoints,
        stop_on_entry: stopsAtEntry,
        ...(Object.keys(values).length > 0 ? { context: values } : {}),
      });
      setParameters({ session: opened.session_id, execution: opened.execution_id, sandbox });
    } catch (thrown) {
      setProblem(Problem.from(thrown));
      if (fresh) void remove(`/sandbox/${encodeURIComponent(fresh)}`).catch(() => {}); // it ends unused in time, if not now
    }
    setStarting(false);
  };
  const edit = async () => {
    if (session) {
      setDraft({ code: session.code.value ?? draft.code, breakpoints: draft.breakpoints });
      await session.close();
    }
    setParameters({ session: "", execution: "" });
  };
  const proceed = () => (session ? state === "stopped" && session.move("continue") : start());

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey) return;
      const key = (event.altKey ? "Alt+" : "") + (event.shiftKey ? "Shift+" : "") + event.key;
      const command = commands.find((c) => c.keys === key);
      if (command) void session?.move(command.move);
      else if (key === "F5") void proceed();
      else if (key === "Shift+F5") void (session && state !== "ended" && session.end());
      else if (key === "F6") void session?.pause();
      else if (key === "F9") {
        const line = editor.current?.cursorLine() ?? position?.line_number;
        if (line) toggle(line);
      } else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  });

  const failure = problem ?? session?.problem.value;
  const isGone = session && !position && failure?.status === 404;
  const code = session ? session.code.value : isLoading ? undefined : draft.code;
  return (
    <Page
      title="Debugger"
      actions={<Where position={position} />}
      intro="Stop code at a line, look at its variables, and step forward or back. Steps that are past come from the recording."
    >
      <div class="debug-toolbar panel" role="toolbar" aria-label="Debugger">
        {session ? (
          <Tool name="Continue" keys="F5" icon={toStart} disabled={state !== "stopped"} action={proceed} isMain />
        ) : (
          <Tool
            name={starting ? "Starting…" : "Start"}
            keys="F5"
            icon={toStart}
            disabled={starting || !code?.trim()}
            action={start}
            isMain
          />
        )}
        {commands.map((command) => (
          <Tool
            key={command.move}
            name={command.name}
            keys={command.keys}
            icon={command.icon}
            disabled={!(state === "stopped" || (state === "ended" && /[bB]ack|reverse/.test(command.move)))}
            action={() => session?.move(command.move)}
          />
        ))}
        <Tool
          name="Pause"
          keys="F6"
          icon="M5 3v10M11 3v10"
          disabled={state !== "running"}
          action={() => session?.pause()}
        />
        <Tool
          name="Stop"
          keys="Shift+F5"
          icon="M4 4h8v8H4z"
          disabled={!session || state === "ended" || !position}
          action={() => session?.end()}
        />
        {session && <button onClick={edit}>Edit the code</button>}
      </div>
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
      <div class="columns debug">
        <div class="main">
          {!session && <Options stopsAtEntry={stopsAtEntry} setStopsAtEntry={setStopsAtEntry} />}
          <Panel
            title="Code"
            note={
              position?.line_number
                ? `line ${position.line_number}, before it runs`
                : "click beside a line, or press F9, for a breakpoint"
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

function Tool(props: {
  name: string;
  keys: string;
  icon: string;
  disabled: boolean;
  action: () => unknown;
  isMain?: boolean;
}) {
  return (
    <button
      class={props.isMain ? "primary" : ""}
      disabled={props.disabled}
      title={`${props.name} (${props.keys})`}
      aria-keyshortcuts={props.keys}
      onClick={() => void props.action()}
    >
      <Icon of={props.icon} /> <span class="words">{props.name}</span>{" "}
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a <kbd> takes no focus */}
      <kbd aria-hidden="true">{props.keys}</kbd>
    </button>
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

function Editor(props: {
  editor: { current: DebugEditor | undefined };
  code: string;
  source: string; // of the code: the editor takes the code when its source changes, and not each edit back
  isEditable: boolean;
  breakpoints: RequestedBreakpoint[];
  line: number;
  onToggle: (line: number) => void;
  onDraft: (change: (draft: Draft) => Draft) => void;
}) {
  const { editor, code, source, isEditable, breakpoints, line } = props;
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const [ready, setReady] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let mine: DebugEditor | undefined;
    let gone = false;
    setProblem(undefined);
    import("../parts/debug_editor").then(
      ({ showDebugEditor }) => {
        if (gone || !place.current) return;
        mine = editor.current = showDebugEditor(place.current, latest.current.code, "Code", {
          onToggle: (at) => latest.current.onToggle(at),
          onCode: (text) => latest.current.isEditable && latest.current.onDraft((draft) => ({ ...draft, code: text })),
          onMove: (lines) =>
            latest.current.isEditable &&
            latest.current.onDraft((draft) => ({
              ...draft,
              breakpoints: draft.breakpoints
                .map((b) => ({ ...b, line: lines.get(b.line) ?? b.line }))
                .filter((b, index, all) => all.findIndex((other) => other.line === b.line) === index),
            })),
        });
        setReady(true);
      },
      (thrown: unknown) => setProblem(Problem.from(thrown)),
    );
    return () => {
      gone = true;
      mine?.remove();
      editor.current = undefined;
    };
  }, [attempt]);
  useEffect(() => editor.current?.setCode(code), [ready, source]);
  useEffect(() => editor.current?.setEditable(isEditable), [ready, isEditable]);
  useEffect(() => editor.current?.setBreakpoints(breakpoints), [ready, source, breakpoints]);
  useEffect(() => editor.current?.moveTo(isEditable ? 0 : line), [ready, source, isEditable, line]);
  return (
    <>
      {problem && <Failure problem={problem} retry={() => setAttempt(attempt + 1)} />}
      {!ready && <pre class="text plain-code">{code}</pre>}
      <div ref={place} class="editor" />
    </>
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

function Breakpoints({
  list,
  change,
}: {
  list: (RequestedBreakpoint & { message?: string })[];
  change: (list: RequestedBreakpoint[]) => void;
}) {
  return (
    <Panel title="Breakpoints" note={list.length ? count(list.length) : undefined}>
      {list.length === 0 && <p class="body muted">Click beside a line of the code, or press F9 in it.</p>}
      <ul class="breakpoints">
        {list.map((breakpoint) => (
          <li key={breakpoint.line}>
            <label>
              Line {breakpoint.line}, if{" "}
              <input
                class="mono"
                value={breakpoint.condition ?? ""}
                placeholder="always"
                spellcheck={false}
                onChange={(event) => {
                  const condition = event.currentTarget.value.trim();
                  change(list.map((b) => (b === breakpoint ? { ...b, condition } : b)));
                }}
              />
            </label>
            <button
              aria-label={`Remove the breakpoint of line ${breakpoint.line}`}
              onClick={() => change(list.filter((b) => b !== breakpoint))}
            >
              ×
            </button>
            {breakpoint.hitCondition && (
              <p class="detail">
                Only at hits <code>{breakpoint.hitCondition}</code>
              </p>
            )}
            {breakpoint.logMessage && (
              <p class="detail">
                Prints <code>{breakpoint.logMessage}</code> and does not stop
              </p>
            )}
            {breakpoint.message && <p class="why">{breakpoint.message}</p>}
          </li>
        ))}
      </ul>
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
