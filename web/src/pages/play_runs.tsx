import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { asText, bytes, clock, count, duration, firstLine, fullTime, plural, zone } from "../format";
import { Code } from "../parts/code";
import { Copy, Failure, Loading } from "../parts/feedback";
import { Status } from "../parts/label";
import { Panel } from "../parts/panel";
import { isTable, Value } from "../parts/value";
import { stepsOf, useNow } from "./execution";
import { Artifacts, Failed, Logs, Queries } from "./execution_details";
import { marks } from "./execution_marks";
import { Outputs, resultPath } from "./execution_outputs";
import type { Run } from "./play_run";
import { advice, type Session } from "./play_session";

// Runs shows the runs of the session, newest first.
export function Runs({ session, copy }: { session: Session; copy: (code: string) => void }) {
  const runs = session.runs.value;
  const [last] = runs;
  return (
    <>
      <p class="visually-hidden" role="status">
        {last && `Run ${session.unlisted.value + runs.length}: ${last.status.value}`}
      </p>
      {runs.map((run, index) => (
        <RunView
          key={run}
          run={run}
          number={session.unlisted.value + runs.length - index}
          session={session}
          copy={copy}
        />
      ))}
      {session.unlisted.value > 0 && (
        <p class="muted">
          Earlier runs are in{" "}
          <a href={`/ui/executions?sandbox=${encodeURIComponent(session.id.value)}`}>the list of executions</a>.
        </p>
      )}
    </>
  );
}

function RunView({
  run,
  number,
  session,
  copy,
}: {
  run: Run;
  number: number;
  session: Session;
  copy: (code: string) => void;
}) {
  run.version.value; // draws again when it changes; each part of a run reads it
  const status = run.status.value;
  const address = `/ui/executions/${encodeURIComponent(run.id)}`;
  const now = useNow(!run.isOver);
  const time = run.record
    ? duration(run.record.execution_time * 1000)
    : !run.isOver && duration(now - new Date(run.createdAt).getTime());
  return (
    <section class="panel run" aria-label={`Run ${number}`}>
      <header>
        <h2>
          <span>Run {number}</span> <Status of={status} />
          <span class="muted" title={fullTime(run.createdAt)}>
            {time && <>{time}, </>}
            <time dateTime={run.createdAt}>
              {clock(new Date(run.createdAt)).slice(0, 8)} {zone(new Date(run.createdAt))}
            </time>
          </span>
        </h2>
        <span class="run-actions">
          {run.record && stepsOf(run.record) > 0 && (
            <a href={`/ui/executions/${encodeURIComponent(run.id)}/steps`}>Its steps</a>
          )}
          {run.id && <a href={address}>Open the execution</a>}
          <button
            onClick={async () => {
              if (!run.isLoaded) await run.load(); // the summary has the beginning of the code only
              if (run.isWhole) copy(run.code);
            }}
          >
            Copy code into the editor
          </button>
        </span>
      </header>
      <RunCode run={run} />
      <div class="run-body">
        {run.isLoaded ? (
          <Body run={run} session={session} />
        ) : (
          <p>
            <button onClick={() => void run.load()}>Show its output</button>
          </p>
        )}
      </div>
    </section>
  );
}

function RunCode({ run }: { run: Run }) {
  run.version.value;
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      class="run-code"
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
        if (event.currentTarget.open && !run.isLoaded) void run.load();
      }}
    >
      <summary>
        <code>{firstLine(run.code) || "(no code)"}</code>{" "}
        {run.isWhole && <span class="muted">{plural(run.code.trimEnd().split("\n").length, "line")}</span>}
      </summary>
      {isOpen && <Code code={run.code} marks={run.record ? marks(run.record) : []} label="Code of the run" />}
    </details>
  );
}

function Body({ run, session }: { run: Run; session: Session }) {
  run.version.value; // the lists are copied: a part that is given the same list is not drawn again
  const record = run.record;
  const result = record?.result ?? null;
  const hasResult = result !== null && !run.outputs.some((output) => output.role === "result");
  const isSilent =
    record && !hasResult && !record.error && run.outputs.length === 0 && !run.stdout.text && !run.stderr.text;
  const whole = <a href={`/ui/executions/${encodeURIComponent(run.id)}`}>the execution</a>;
  return (
    <>
      {run.problem && <RunProblem run={run} />}
      {run.isLost && (
        <p class="notice warn" role="status">
          The connection is lost; the run continues. Connecting again…
        </p>
      )}
      {record?.session_reset && (
        <p class="notice warn">
          <strong>The variables of the session are lost.</strong> Its process has ended. Files stay.
        </p>
      )}
      {record && <Failed of={record} isMine={run.isCancelled} />}
      {hasResult && (
        <Panel
          title="Result"
          note={isTable(result) ? plural(result.length, "row") : undefined}
          actions={<Copy label="Copy JSON" text={() => JSON.stringify(result, null, 2)} />}
        >
          <Value of={short(result)} label="Result" remote={record ? resultPath(record) : undefined} />
        </Panel>
      )}
      <Outputs outputs={[...run.outputs]} execution={run.id} />
      <Left count={run.left.outputs} what="output" whole={whole} />
      {(["stdout", "stderr"] as const).map(
        (name) =>
          run[name].text && (
            <Stream key={name} name={name} run={run} limit={session.limits.value?.max_output_size} whole={whole} />
          ),
      )}
      {run.queries.length > 0 && (
        <Queries
          queries={[...run.queries]}
          cut={run.left.queries}
          execution={run.isOver && run.record ? run.id : ""}
          isKept={run.isOver && run.record !== undefined}
        />
      )}
      {record && record.artifacts.length > 0 && <Artifacts of={record} />}
      {(run.logs.length > 0 || Object.keys(record?.debug_info.variables ?? {}).length > 0) && (
        <Logs logs={[...run.logs]} variables={record?.debug_info.variables ?? {}} />
      )}
      <Left count={run.left.logs} what="note" whole={whole} />
      {isSilent && <p class="muted">The code ended without a result and printed nothing.</p>}
      {!run.isOver && !run.problem && <Loading what="what the code prints" />}
    </>
  );
}

function RunProblem({ run }: { run: Run }) {
  run.version.value;
  const problem = run.problem!;
  const help = run.id ? "" : advice(problem);
  return (
    <>
      <Failure problem={problem} />
      {help && (
        <p class="muted">
          {help}
          {problem.status === 429 && (
            <>
              {" "}
              <a href="/ui/sandboxes">Sandboxes</a>
            </>
          )}
        </p>
      )}
    </>
  );
}

function Left({ count: left, what, whole }: { count: number; what: string; whole: ComponentChildren }) {
  if (left === 0) return null;
  return (
    <p class="muted">
      {plural(left, `more ${what}`)} {left === 1 ? "is" : "are"} not shown here. Open {whole}.
    </p>
  );
}

// Stream shows the end of what a run has printed, and says what is missing.
function Stream(props: { name: "stdout" | "stderr"; run: Run; limit: number | undefined; whole: ComponentChildren }) {
  const { name, run, limit } = props;
  run.version.value;
  const tail = run[name];
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  });
  const unkept = run.record?.truncated[name] ?? 0;
  return (
    <Panel title={name} actions={<Copy label="Copy" text={() => tail.text} />}>
      {tail.left > 0 && (
        <p class="cut">
          The first {count(tail.left)} characters are not shown here.{" "}
          {run.id && <>All that is kept is in {props.whole}.</>}
        </p>
      )}
      <pre
        ref={box}
        class="text"
        tabIndex={0}
        role="group"
        aria-label={name}
        onScroll={({ currentTarget: at }) => {
          isAtEnd.current = at.scrollTop + at.clientHeight >= at.scrollHeight - 20;
        }}
      >
        {tail.text}
      </pre>
      {(unkept > 0 || run.isCut[name]) && (
        <p class="cut">
          The end is missing: {unkept > 0 ? `${bytes(unkept)} more were printed, and ` : "more was printed, and "}
          the service keeps the first {limit ? bytes(limit) : "part"} only (<code>max_output_size</code>).
        </p>
      )}
    </Panel>
  );
}

const maxResultChars = 200_000;

// short returns a value, or the beginning of its text if it is too large to be drawn at once.
function short(value: unknown): unknown {
  if (isTable(value)) return value; // shows its first rows
  const text = asText(value);
  if (text.length <= maxResultChars) return value;
  return `${text.slice(0, maxResultChars)}\n… ${count(text.length - maxResultChars)} more characters are not shown here`;
}
