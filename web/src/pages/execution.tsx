import { useEffect, useRef, useState } from "preact/hooks";
import { get, post, remove } from "../api/client";
import { follow } from "../api/events";
import { isAborted, Problem } from "../api/problem";
import type { Execution as Record } from "../api/records";
import { duration, plural, shortID, titleOf } from "../format";
import { Code } from "../parts/code";
import { Copy, Failure, Loading, TwoSteps } from "../parts/feedback";
import { Ago, Status } from "../parts/label";
import { Panel, TextPanel } from "../parts/panel";
import { Rename } from "../parts/rename";
import { navigate, setParameters } from "../router";
import { isAdmin, mayDebug } from "../session";
import { Page } from "../shell";
import { canReplay, type KnownReplay, type Replay, useKnownReplay } from "../why/recorded_replay";
import { Answer, useAnswer } from "./execution_answer";
import { asCurl, asPython } from "./execution_commands";
import { Artifacts, Comparison, Connections, Facts, Failed, Logs, Queries } from "./execution_details";
import { marks } from "./execution_marks";
import { Outputs } from "./execution_outputs";
import { TimeAxis } from "./execution_time_axis";
import { forgetList, listAddress } from "./executions";
import { chosenRuns } from "./executions_choice";

const isOver = (e: Record) => e.status !== "running" && e.status !== "created";

interface Live {
  record: Record | undefined;
  problem: Problem | undefined;
  stdout: string;
  stderr: string;
  reload: () => void;
  rename: (title: string) => void; // takes up a new title
}

// useExecution loads an execution and follows it until it has ended.
function useExecution(id: string): Live {
  const [record, setRecord] = useState<Record>();
  const [problem, setProblem] = useState<Problem>();
  const [text, setText] = useState({ stdout: "", stderr: "" });
  const [attempt, setAttempt] = useState(0);
  const path = `/executions/${encodeURIComponent(id)}`;
  const running = record !== undefined && !isOver(record);

  const load = async (signal?: AbortSignal) => {
    try {
      setRecord(await get<Record>(path, {}, signal));
      setProblem(undefined);
    } catch (thrown) {
      if (!isAborted(thrown)) setProblem(Problem.from(thrown));
    }
  };
  useEffect(() => {
    const request = new AbortController();
    setRecord(undefined);
    setProblem(undefined);
    void load(request.signal);
    return () => request.abort();
  }, [id, attempt]);
  useEffect(() => {
    if (!running) return;
    const request = new AbortController();
    const received = { stdout: "", stderr: "" }; // the events begin with the first
    let timer = 0;
    const soon = () => {
      // Many statements in a row load the record once.
      timer ||= window.setTimeout(() => {
        timer = 0;
        void load(request.signal);
      }, 500);
    };
    const stop = follow(
      path,
      {},
      {
        onEvent: ({ name, data }) => {
          if (name === "stdout" || name === "stderr") {
            received[name] += (JSON.parse(data) as { text: string }).text;
            setText({ ...received });
          } else if (name === "done") void load(request.signal);
          else soon();
        },
        onLost: soon,
      },
    );
    return () => {
      stop();
      request.abort();
      window.clearTimeout(timer);
    };
  }, [id, running]);
  return {
    record,
    problem,
    ...text,
    reload: () => setAttempt(attempt + 1),
    rename: (title) => setRecord((before) => before && { ...before, title }),
  };
}

// useNow returns the time, which goes on while something runs.
export function useNow(runs: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!runs) return;
    const timer = window.setInterval(() => setNow(Date.now()), 250);
    return () => window.clearInterval(timer);
  }, [runs]);
  return now;
}

// Execution is the page of one execution.
export function Execution({ id }: { id: string }) {
  const { record: e, problem, stdout, stderr, reload, rename } = useExecution(id);
  const known = useKnownReplay(e);
  const answer = useAnswer(e, known);
  const runs = e !== undefined && !isOver(e);
  const now = useNow(runs);
  useEffect(() => {
    const back = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key === "Escape" && target.matches("body, h1")) navigate(listAddress());
    };
    document.addEventListener("keydown", back);
    return () => document.removeEventListener("keydown", back);
  }, []);
  if (!e) {
    return (
      <Page title={`Execution ${shortID(id)}`}>
        {problem ? (
          <Failure problem={problem} retry={problem.status === 404 ? undefined : reload} />
        ) : (
          <Loading what="the execution" />
        )}
        {problem && (
          <p>
            <a href={listAddress()}>All executions</a>
          </p>
        )}
      </Page>
    );
  }
  const code = e.code ?? "";
  const name = titleOf(e) || `Execution ${shortID(id)}`;
  const hasResult = e.result !== null;
  const logs = e.debug_info.logs.length + Object.keys(e.debug_info.variables).length;
  return (
    <Page
      title={name}
      heading={
        <>
          <a class="crumb" href={listAddress()}>
            Executions
          </a>{" "}
          <span class="muted" aria-hidden="true">
            /
          </span>{" "}
          {name}
        </>
      }
      actions={<Actions of={e} known={known} />}
    >
      <p class="summary">
        <Status of={e.status} />
        <span>
          {runs ? `for ${duration(now - new Date(e.created_at).getTime())}` : duration(e.execution_time * 1000)}
        </span>
        <span class="muted">
          {e.kind} of {e.user_id}, <Ago at={e.created_at} />
        </span>
        <Rename
          path={`/executions/${encodeURIComponent(e.execution_id)}/title`}
          title={e.title ?? ""}
          renamed={(title) => {
            rename(title);
            forgetList();
          }}
        />
      </p>
      {problem && <Failure problem={problem} retry={reload} />}
      <TimeAxis execution={e} now={now} />
      <div class="columns">
        <div class="main">
          <Failed of={e} />
          {e.replay && <Comparison of={e.replay} by={e.execution_id} />}
          <Answer of={e} answer={answer} known={known}>
            {code && (
              <Panel
                title="Code"
                note={plural(code.trimEnd().split("\n").length, "line")}
                actions={<Copy label="Copy" text={() => code} />}
              >
                <Code
                  code={code}
                  marks={[...marks(e), ...answer.marks]}
                  label="Code"
                  onName={answer.recording ? (name) => setParameters({ why: name }, true) : undefined}
                />
              </Panel>
            )}
          </Answer>
          <Outputs outputs={e.outputs.filter((output) => output !== answer.output)} execution={e.execution_id} />
          {(e.stdout || (runs && stdout)) && (
            <TextPanel title="stdout" text={e.stdout || stdout} cut={e.truncated["stdout"]} />
          )}
          {(e.stderr || (runs && stderr)) && (
            <TextPanel title="stderr" text={e.stderr || stderr} cut={e.truncated["stderr"]} />
          )}
          {e.queries.length > 0 && (
            <Queries
              queries={e.queries}
              cut={e.truncated["queries"]}
              execution={e.execution_id}
              isKept={e.input_log !== undefined && isOver(e)}
            />
          )}
          {e.connections.length > 0 && <Connections connections={e.connections} />}
          {e.artifacts.length > 0 && <Artifacts of={e} />}
          {logs > 0 && <Logs logs={e.debug_info.logs} variables={e.debug_info.variables} />}
          {!runs && !hasResult && !e.error && e.outputs.length === 0 && !e.stdout && !e.stderr && (
            <p class="muted">The code ended without a result and printed nothing.</p>
          )}
          {runs && (
            <p class="loading" role="status">
              <span class="spinner" aria-hidden="true" /> Running.
              {!stdout && !stderr && !e.stdout && !e.stderr && " Nothing is printed yet."}
            </p>
          )}
        </div>
        <Facts of={e} />
      </div>
    </Page>
  );
}

// stepsOf returns the number of recorded steps that the caller may see: agents may not read recordings.
export function stepsOf(e: Record): number {
  return isOver(e) && mayDebug.value ? e.recorded_steps : 0;
}

function Actions({ of: e, known }: { of: Record; known: KnownReplay }) {
  const steps = stepsOf(e);
  const canRunAgain = isOver(e) && Boolean(e.code) && e.kind !== "database-query"; // the code of a query is SQL
  const [problem, setProblem] = useState<Problem>();
  const [isCancelled, setCancelled] = useState(false);
  const gone = useRef(false);
  useEffect(
    () => () => {
      gone.current = true;
    },
    [],
  );
  const attempt = (action: () => Promise<unknown>) => async () => {
    setProblem(undefined);
    try {
      await action();
    } catch (thrown) {
      if (!gone.current) setProblem(Problem.from(thrown));
    }
  };
  return (
    <>
      {problem && (
        <span class="field-error" role="alert">
          {problem.message}
        </span>
      )}
      {!isOver(e) && (
        <button
          disabled={isCancelled}
          onClick={attempt(async () => {
            setCancelled(true);
            await post(`/executions/${encodeURIComponent(e.execution_id)}/cancel`);
          })}
        >
          {isCancelled ? "Cancelling…" : "Cancel"}
        </button>
      )}
      {steps > 0 && (
        <a
          class="button"
          href={`/ui/executions/${encodeURIComponent(e.execution_id)}/steps${e.status === "failed" ? `?step=${steps}` : ""}`}
        >
          Time travel: {plural(steps, "step")}
        </a>
      )}
      {steps === 0 && canReplay(e) && <StepThrough of={e} known={known} attempt={attempt} />}
      {canRunAgain && (
        <a class="button" href={`/ui/play?execution=${encodeURIComponent(e.execution_id)}`}>
          Open in the playground
        </a>
      )}
      {canRunAgain && mayDebug.value && (
        <a class="button" href={`/ui/debug?execution=${encodeURIComponent(e.execution_id)}`}>
          Debug
        </a>
      )}
      {isOver(e) && (
        <button
          title="Choose another run in the list, and see both side by side"
          onClick={() => {
            chosenRuns.value = [e];
            navigate(listAddress());
          }}
        >
          Compare with…
        </button>
      )}
      {e.code && <Copy label="Copy as curl" text={() => asCurl(e)} />}
      {e.code && <Copy label="Copy as Python" text={() => asPython(e)} />}
      {isAdmin.value && isOver(e) && (
        <TwoSteps
          label="Erase"
          confirm="Erase this record for ever"
          danger
          action={attempt(async () => {
            await remove(`/executions/${encodeURIComponent(e.execution_id)}`);
            forgetList();
            navigate(listAddress(), true);
          })}
        />
      )}
    </>
  );
}

// StepThrough leads to the steps of a run that was not recorded: those of a replay, which is made if there is none.
export function StepThrough(props: {
  of: Record;
  known: KnownReplay;
  attempt: (action: () => Promise<unknown>) => () => Promise<void>;
}) {
  const { of: e, known, attempt } = props;
  const [isReplaying, setReplaying] = useState(false);
  const gone = useRef(false);
  useEffect(
    () => () => {
      gone.current = true;
    },
    [],
  );
  const addressOf = (replay: Replay) => `/ui/executions/${encodeURIComponent(replay.execution_id)}/steps`;
  if (known.replay)
    return (
      <a class="button" href={addressOf(known.replay)} title="The run ran again, did the same, and was recorded">
        Step through: {plural(known.replay.recorded_steps, "step")}
      </a>
    );
  const record = async () => {
    setReplaying(true);
    try {
      const replay = await known.record();
      if (!gone.current) navigate(addressOf(replay));
    } finally {
      if (!gone.current) setReplaying(false);
    }
  };
  const cost = known.isLooking ? "" : ` (runs again, ${duration(e.usage.wall_ms)})`;
  return (
    <button
      disabled={isReplaying}
      title={`Runs the code again with the rows that it got, and records it. The run took ${duration(e.usage.wall_ms)}.`}
      onClick={attempt(record)}
    >
      {isReplaying ? "Running again…" : `Step through${cost}`}
    </button>
  );
}
