import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { address, get } from "../api/client";
import { Problem } from "../api/problem";
import type { Execution } from "../api/records";
import { shortID } from "../format";
import { readDraft, writeDraft } from "../parts/draft";
import { Empty, Failure, Loading, TwoSteps } from "../parts/feedback";
import { Panel } from "../parts/panel";
import type { CodeProblem, EditorOptions, Matches, PythonEditor } from "../parts/python_editor";
import type { Schema } from "../parts/sql";
import { parameter, path, setParameters } from "../router";
import { mayDebug } from "../session";
import { Page } from "../shell";
import { marks } from "./execution";
import { type Example, examples } from "./play_examples";
import { Files, Uploads } from "./play_files";
import { Examples, Helpers, SchemaBrowser, Variables } from "./play_panels";
import { Runs } from "./play_runs";
import { Session } from "./play_session";
import { Former, Sessions } from "./play_sessions";

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);
const runKey = isApple ? "⌘ Enter" : "Ctrl+Enter";

// Playground is the page on which one writes code and runs it.
export function Playground() {
  const current = useSignal<Session>(useMemo(() => new Session(parameter("sandbox") || readDraft("play-sandbox")), []));
  const session = current.value;
  const uploads = useMemo(() => new Uploads(session), [session]);
  const editor = useRef<PythonEditor | undefined>(undefined);
  const waiting = useRef<string | undefined>(undefined); // code for the editor when it is loaded
  const [context, setContext] = useState(() => readDraft("play-context"));
  const [note, setNote] = useState("");
  const [refusal, setRefusal] = useState<Problem>();
  const [wantsCapture, setWantsCapture] = useState(false);
  const [former, setFormer] = useState<Session>(); // which the person has just left
  const [isDropping, setDropping] = useState(false);
  const state = session.state.value;
  const isRunning = session.isRunning;

  const begin = (next: Session) => {
    const left = current.value;
    left.leave();
    setFormer(left.state.value === "none" ? undefined : left);
    current.value = next;
    setRefusal(undefined);
    setWantsCapture(false);
    writeDraft("play-sandbox", "");
    setParameters({ sandbox: "" }, true);
  };

  const wanted = parameter("sandbox");
  const id = session.id.value;
  useEffect(() => {
    if (path.value !== "/play") return;
    if (wanted && wanted !== id)
      current.value = new Session(wanted); // by the browser's Back
    else if (id && state !== "ended") writeDraft("play-sandbox", id);
    if (id && !wanted) setParameters({ sandbox: id }, true);
  }, [wanted, id, state]);
  useEffect(() => {
    // A session that only this tab remembers, and that has ended, is of no interest.
    const isRemembered = wanted === "";
    void session.open().then(() => {
      if (isRemembered && session.id.value && session.state.value === "ended" && current.value === session)
        begin(new Session());
      editor.current?.check();
    });
    return () => session.leave();
  }, [session]);
  useEffect(() => {
    if (state === "live" || state === "none") editor.current?.check();
  }, [state]);

  const setCode = (code: string) => {
    if (editor.current) editor.current.setCode(code);
    else waiting.current = code;
  };
  const changeContext = (text: string) => {
    setContext(text);
    writeDraft("play-context", text);
  };
  const execution = parameter("execution");
  useEffect(() => {
    if (!execution) return;
    const request = new AbortController();
    get<Execution>(`/executions/${encodeURIComponent(execution)}`, {}, request.signal).then(
      (record) => {
        setCode(record.code ?? "");
        const has = record.context && Object.keys(record.context).length > 0;
        changeContext(has ? JSON.stringify(record.context, null, 2) : "");
        setNote(
          record.code ? `The editor has the code of execution ${shortID(execution)}.` : "This execution has no code.",
        );
        setParameters({ execution: "" }, true); // a reload keeps what one changes
      },
      (thrown: unknown) => {
        if (!request.signal.aborted) setRefusal(Problem.from(thrown));
      },
    );
    return () => request.abort();
  }, [execution]);

  // code is that of the editor, which may not be loaded yet when an example runs.
  const run = async (record = false, code = editor.current?.code() ?? "") => {
    const session = current.value; // an example may just have begun it
    if (session.isRunning || session.state.value === "ended") return;
    setNote(code.trim() ? "" : "There is no code to run.");
    if (!code.trim()) return;
    let given: Record<string, unknown> | undefined;
    try {
      given = parseContext(context);
      setRefusal(undefined);
    } catch (thrown) {
      setRefusal(new Problem(422, "The context is not a JSON object", (thrown as Error).message));
      return;
    }
    editor.current?.mark([]);
    const ended = await session.run({ code, ...(given && { context: given }), ...(record && { record }) });
    if (ended.record && editor.current?.code() === code) editor.current.mark(marks(ended.record));
    editor.current?.check();
  };
  const stop = () => void session.runs.value.find((shown) => shown.isLoaded && !shown.isOver)?.cancel();
  const use = (example: Example): boolean => {
    setCode(example.code);
    changeContext("");
    setNote("");
    const captures = session.limits.value?.write_policy === "capture";
    if (example.capture && !captures && session.id.value) setWantsCapture(true);
    else if (example.capture && !captures) begin(new Session("", { write_policy: "capture" }));
    else setWantsCapture(false);
    return !example.capture || captures || !current.value.id.value;
  };
  const runExample = (example: Example) => {
    if (use(example)) void run(false, example.code);
  };

  const check = async (code: string): Promise<CodeProblem[]> => {
    const { value: state } = current.value.state;
    if (state === "opening" || state === "ended" || current.value.isRunning || !code.trim()) return [];
    try {
      return (await current.value.inspect<{ problems?: CodeProblem[] }>("check", { code })).problems ?? [];
    } catch (thrown) {
      current.value.learn(Problem.from(thrown));
      return [];
    }
  };
  const complete = async (code: string, cursor: number): Promise<Matches | undefined> => {
    if (current.value.state.value === "ended") return undefined;
    if (current.value.isRunning) {
      setNote("Completion is not available while code runs.");
      return undefined;
    }
    try {
      const matches = await current.value.inspect<Matches>("complete", { code, cursor });
      setNote("");
      return matches;
    } catch (thrown) {
      const problem = Problem.from(thrown);
      if (!current.value.learn(problem)) setNote(`No completion: ${problem.message}`);
      return undefined;
    }
  };
  const schema = async (database: string): Promise<Schema | undefined> => {
    try {
      return await current.value.schema(database);
    } catch (thrown) {
      const problem = Problem.from(thrown);
      if (!current.value.learn(problem)) setNote(`No names of tables: ${problem.message}`);
      return undefined;
    }
  };
  // The editor is made once, and calls what is there then.
  const latest = useRef<EditorCalls>({ run: () => {}, complete, check, schema });
  latest.current = { run: () => void run(), complete, check, schema };

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      latest.current.run();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);

  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setDropping(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setDropping(false); // the window
    const drop = (event: DragEvent) => {
      setDropping(false);
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      setParameters({ panel: "files" }, true);
      void uploads.add(files);
    };
    document.addEventListener("dragover", over);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, [uploads]);

  return (
    <Page title="Playground" actions={<SessionActions session={session} begin={() => begin(new Session())} />}>
      <div class={isDropping ? "play dropping" : "play"}>
        <div class="main">
          {former && <Former session={former} dismiss={() => setFormer(undefined)} />}
          <Notices session={session} begin={begin} refusal={refusal} wantsCapture={wantsCapture} />
          <Panel
            title="Code"
            actions={
              <span class="run-actions">
                <button class="primary" disabled={isRunning || state === "ended"} onClick={() => void run()}>
                  Run <kbd>{runKey}</kbd>
                </button>
                {mayDebug.value && (
                  <button
                    disabled={isRunning || state === "ended"}
                    title="Records the run; go through its steps afterwards"
                    onClick={() => void run(true)}
                  >
                    Run and record
                  </button>
                )}
                <button disabled={!isRunning} onClick={stop}>
                  Stop
                </button>
              </span>
            }
          >
            <Editor
              latest={latest}
              onChange={(made) => {
                editor.current = made;
                if (waiting.current !== undefined) made?.setCode(waiting.current);
                waiting.current = undefined;
              }}
            />
            <details class="context" open={context !== ""}>
              <summary>
                Context <span class="muted">values that the code finds as variables</span>
              </summary>
              <textarea
                aria-label="Context, a JSON object"
                rows={4}
                spellcheck={false}
                placeholder={'{"limit": 5}'}
                value={context}
                onInput={(event) => changeContext(event.currentTarget.value)}
              />
            </details>
            <p class="hint muted">
              <span role="status">{note}</span>
              <span class="keys">Tab indents; Escape, then Tab leaves the editor. F8 goes to the next problem.</span>
            </p>
          </Panel>
          <p class="to-side">
            <button onClick={() => document.querySelector(".play-side")?.scrollIntoView()}>
              Examples, variables, schema and files
            </button>
          </p>
          {session.runs.value.length === 0 && state !== "opening" && <NoRuns run={runExample} />}
          <Runs
            session={session}
            copy={(code) => {
              setCode(code);
              editor.current?.focus();
            }}
          />
        </div>
        <Side session={session} uploads={uploads} editor={editor} use={use} run={runExample} />
      </div>
    </Page>
  );
}

function parseContext(text: string): Record<string, unknown> | undefined {
  if (!text.trim()) return undefined;
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error('expected an object such as {"limit": 5}');
  return value as Record<string, unknown>;
}

type EditorCalls = Pick<EditorOptions, "complete" | "check" | "schema"> & { run: () => void };

function Editor({
  latest,
  onChange,
}: {
  latest: { current: EditorCalls };
  onChange: (editor: PythonEditor | undefined) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [isReady, setReady] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let made: PythonEditor | undefined;
    let gone = false;
    setProblem(undefined);
    import("../parts/python_editor").then(
      ({ editPython }) => {
        if (gone || !place.current) return;
        made = editPython(place.current, {
          code: readDraft("play-code"),
          label: "Python code. Tab indents; press Escape, then Tab to leave.",
          onChange: (code) => writeDraft("play-code", code),
          onRun: () => latest.current.run(),
          complete: (code, cursor) => latest.current.complete(code, cursor),
          check: (code) => latest.current.check(code),
          schema: (database) => latest.current.schema(database),
        });
        setReady(true);
        onChange(made);
      },
      (thrown: unknown) => setProblem(Problem.from(thrown)),
    );
    return () => {
      gone = true;
      onChange(undefined);
      made?.remove();
    };
  }, [attempt]);
  return (
    <>
      {problem && <Failure problem={problem} retry={() => setAttempt(attempt + 1)} />}
      {!isReady && !problem && (
        <div class="body editor-loading">
          <Loading what="the editor" />
        </div>
      )}
      <div ref={place} class="editor code-editor" />
    </>
  );
}

function SessionActions({ session, begin }: { session: Session; begin: () => void }) {
  const limits = session.limits.value;
  const state = session.state.value;
  if (state === "none") return <span class="muted">A session begins when you run code.</span>;
  const facts = limits && [
    `runs of at most ${limits.max_execution_time} s`,
    limits.write_policy === "capture" ? "writes wait for an admin" : "no writes",
    limits.enable_network_access ? `network: ${limits.allowed_hosts.join(", ")}` : "no network",
    `ends after ${Math.round(limits.idle_timeout / 60)} min without use`,
  ];
  return (
    <>
      <span class="muted session-facts" title={facts?.join(" · ")}>
        {state === "opening" && !session.id.value ? (
          "Starting a session…"
        ) : (
          <>
            Session <span class="mono">{shortID(session.id.value)}</span>
          </>
        )}
        {state === "ended" && ", ended"}
        {state === "live" && facts && ` · ${facts.join(" · ")}`}
      </span>
      {state === "live" && (
        <TwoSteps label="End session" confirm="End it, with its variables" danger action={() => session.end()} />
      )}
      <button title="Begins with no variables. You can go back to the current session" onClick={begin}>
        New session
      </button>
    </>
  );
}

function Notices({
  session,
  begin,
  refusal,
  wantsCapture,
}: {
  session: Session;
  begin: (next: Session) => void;
  refusal: Problem | undefined;
  wantsCapture: boolean;
}) {
  return (
    <>
      {session.state.value === "ended" && (
        <div class="notice warn" role="alert">
          <strong>This session has ended.</strong>
          <p>
            Its variables and uploads are gone. Your code is still in the editor, and former runs stay in the history.
          </p>
          <button onClick={() => begin(new Session())}>Start a new session</button>
        </div>
      )}
      {wantsCapture && session.state.value !== "ended" && (
        <div class="notice" role="status">
          <strong>This session refuses writes.</strong>
          <p>In a session that captures writes, they wait until an admin applies them.</p>
          <button onClick={() => begin(new Session("", { write_policy: "capture" }))}>
            Start a session that captures writes
          </button>
        </div>
      )}
      {session.problem.value && (
        <Failure
          problem={session.problem.value}
          retry={() => {
            session.problem.value = undefined;
            void session.open();
          }}
        />
      )}
      {refusal && <Failure problem={refusal} />}
    </>
  );
}

function NoRuns({ run }: { run: (example: Example) => void }) {
  return (
    <Empty title="Nothing has run in this session.">
      Write Python above and run it with {runKey}, or try an example.
      <span class="first-examples">
        {examples.slice(0, 3).map((example) => (
          <button key={example.title} onClick={() => run(example)}>
            {example.title}
          </button>
        ))}
      </span>
    </Empty>
  );
}

const panels = [
  ["examples", "Examples"],
  ["variables", "Variables"],
  ["schema", "Schema"],
  ["files", "Files"],
  ["functions", "Functions"],
  ["sessions", "Sessions"],
] as const;

function Side({
  session,
  uploads,
  editor,
  use,
  run,
}: {
  session: Session;
  uploads: Uploads;
  editor: { current: PythonEditor | undefined };
  use: (example: Example) => void;
  run: (example: Example) => void;
}) {
  const shown = panels.find(([name]) => name === parameter("panel"))?.[0] ?? "examples";
  const title = panels.find(([name]) => name === shown)![1];
  const link = (panel: string) => address("/ui/play", { sandbox: parameter("sandbox"), panel });
  const insert = (text: string) => editor.current?.insert(text);
  const insertLines = (text: string) => editor.current?.insertLines(text);
  return (
    <aside class="play-side" aria-label="Session">
      <nav class="tabs" aria-label="Panels">
        {panels.map(([name, label]) => (
          <a key={name} href={link(name)} aria-current={name === shown ? "true" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      <section class="panel" aria-label={title}>
        {shown === "examples" && <Examples session={session} use={use} run={run} />}
        {shown === "variables" && <Variables session={session} />}
        {shown === "schema" && <SchemaBrowser session={session} insert={insert} insertLines={insertLines} />}
        {shown === "files" && <Files session={session} uploads={uploads} insertLines={insertLines} />}
        {shown === "sessions" && <Sessions session={session} />}
        {shown === "functions" && (
          <Helpers
            session={session}
            insert={insert}
            begin={() =>
              void session.ensure().catch((thrown: unknown) => {
                session.problem.value = Problem.from(thrown);
              })
            }
          />
        )}
      </section>
    </aside>
  );
}
