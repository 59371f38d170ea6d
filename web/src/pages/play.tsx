import { useMemo, useRef, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import { Empty } from "../parts/feedback";
import { hasKeys } from "../parts/has_keys";
import { Panel } from "../parts/panel";
import { mayDebug } from "../session";
import { Page } from "../shell";
import { marks } from "./execution_marks";
import { Notices, SessionActions, useSessions } from "./play_current";
import { Editor, type EditorCalls, inspections, runKey, useRunKey } from "./play_editor";
import { type Example, examples } from "./play_examples";
import { Uploads, useDroppedFiles } from "./play_files";
import { type Program, parseContext, useAddressedExecution, useProgram } from "./play_program";
import { Runs } from "./play_runs";
import { Session } from "./play_session";
import { Former } from "./play_sessions";
import { Side } from "./play_side";

// Playground is the page on which one writes code and runs it.
export function Playground() {
  const program = useProgram();
  const { editor } = program;
  const [note, setNote] = useState("");
  const [refusal, setRefusal] = useState<Problem>();
  const [wantsCapture, setWantsCapture] = useState(false);
  const { current, former, begin, forgetFormer } = useSessions(editor, () => {
    setRefusal(undefined);
    setWantsCapture(false);
  });
  const session = current.value;
  const uploads = useMemo(() => new Uploads(session), [session]);
  useAddressedExecution(program, setNote, setRefusal);

  // When an example runs, the editor may not be loaded yet, and the context of this drawing is the former one.
  const run = async (record = false, code = editor.current?.code() ?? "", context = program.context) => {
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
  const use = (example: Example): boolean => {
    program.setCode(example.code);
    program.setContext("");
    setNote("");
    const captures = session.limits.value?.write_policy === "capture";
    if (example.capture && !captures && session.id.value) setWantsCapture(true);
    else if (example.capture && !captures) begin(new Session("", { write_policy: "capture" }));
    else setWantsCapture(false);
    return !example.capture || captures || !current.value.id.value;
  };
  const runExample = (example: Example) => {
    if (use(example)) void run(false, example.code, "");
  };

  // The editor is made once, and calls what is there then.
  const calls: EditorCalls = { run: () => void run(), ...inspections(current, setNote) };
  const latest = useRef(calls);
  latest.current = calls;
  useRunKey(latest);
  const isDropping = useDroppedFiles(uploads);

  return (
    <Page title="Playground" actions={<SessionActions session={session} begin={() => begin(new Session())} />}>
      <div class={isDropping ? "play dropping" : "play"}>
        <div class="main">
          {former && <Former session={former} dismiss={forgetFormer} />}
          <Notices session={session} begin={begin} refusal={refusal} wantsCapture={wantsCapture} />
          <CodePanel session={session} program={program} latest={latest} note={note} record={() => void run(true)} />
          <p class="to-side">
            <button onClick={() => document.querySelector(".play-side")?.scrollIntoView()}>
              Examples, variables, schema and files
            </button>
          </p>
          {session.runs.value.length === 0 && session.state.value !== "opening" && <NoRuns run={runExample} />}
          <Runs
            session={session}
            copy={(code) => {
              program.setCode(code);
              editor.current?.focus();
            }}
          />
        </div>
        <Side session={session} uploads={uploads} editor={editor} use={use} run={runExample} />
      </div>
    </Page>
  );
}

// CodePanel is where one writes a program, with what runs and stops it.
function CodePanel(props: {
  session: Session;
  program: Program;
  latest: { current: EditorCalls };
  note: string;
  record: () => void; // runs the program and records its steps
}) {
  const { session, program, latest } = props;
  const { isRunning } = session;
  const mayRun = !isRunning && session.state.value !== "ended";
  const stop = () => void session.runs.value.find((shown) => shown.isLoaded && !shown.isOver)?.cancel();
  return (
    <Panel
      title="Code"
      actions={
        <span class="run-actions">
          <button class="primary" disabled={!mayRun} onClick={() => latest.current.run()}>
            Run <kbd>{runKey}</kbd>
          </button>
          {mayDebug.value && (
            <button disabled={!mayRun} title="Records the run; go through its steps afterwards" onClick={props.record}>
              Run and record
            </button>
          )}
          <button disabled={!isRunning} onClick={stop}>
            Stop
          </button>
        </span>
      }
    >
      <Editor latest={latest} onChange={program.setEditor} />
      <details class="context" open={program.context !== ""}>
        <summary>
          Context <span class="muted">values that the code finds as variables</span>
        </summary>
        <textarea
          aria-label="Context, a JSON object"
          rows={4}
          spellcheck={false}
          placeholder={'{"limit": 5}'}
          value={program.context}
          onInput={(event) => program.setContext(event.currentTarget.value)}
        />
      </details>
      <p class="hint muted">
        <span role="status">{props.note}</span>
        <span class="keys">Tab indents; Escape, then Tab leaves the editor. F8 goes to the next problem.</span>
      </p>
    </Panel>
  );
}

function NoRuns({ run }: { run: (example: Example) => void }) {
  return (
    <Empty title="Nothing has run in this session.">
      Write Python above and run it{hasKeys && ` with ${runKey}`}, or try an example.
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
