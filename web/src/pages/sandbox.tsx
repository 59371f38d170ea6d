import { useEffect, useRef, useState } from "preact/hooks";
import { post, remove } from "../api/client";
import { follow } from "../api/events";
import { Problem } from "../api/problem";
import type { SandboxDetails, Summary } from "../api/records";
import { type UploadList, uploadPath } from "../api/upload";
import { bytes, plural, shortID, zone } from "../format";
import { ArtifactList } from "../parts/artifact_list";
import { Failure, Loading, TwoSteps } from "../parts/feedback";
import { Ago, Status, Time } from "../parts/label";
import { type List, More, useList } from "../parts/list";
import { useLoaded } from "../parts/loaded";
import { Panel } from "../parts/panel";
import { Rename } from "../parts/rename";
import { VariableList } from "../parts/variables";
import { Page } from "../shell";
import { RunsOfSession, sessionTitle } from "./executions_sessions";
import { limitsInWords } from "./sandbox_limits";
import { isRunning, withRun } from "./sandbox_runs";

const refreshDelay = 500; // milliseconds; many short runs in a row load the rest of the page once

// useRuns lists the executions of a sandbox and follows them. version grows a moment after one has ended.
function useRuns(id: string): { list: List<Summary>; version: number } {
  const list = useList<Summary>("/executions", "executions", { sandbox_id: id });
  const current = useRef(list);
  current.current = list;
  const [version, setVersion] = useState(0);
  useEffect(() => {
    let timer = 0;
    const stop = follow(
      "/executions/events",
      {},
      {
        onEvent: ({ name, data }) => {
          if (name === "gap") current.current.reload();
          if (name !== "began" && name !== "ended") return;
          const run = JSON.parse(data) as Summary;
          if (run.sandbox_id !== id) return;
          current.current.set(withRun(current.current.rows, run));
          if (name === "began") return;
          window.clearTimeout(timer);
          timer = window.setTimeout(() => setVersion((before) => before + 1), refreshDelay);
        },
      },
    );
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, [id]);
  return { list, version };
}

// SandboxPage is the page of one sandbox: what it is and may do, its variables, files and executions.
export function SandboxPage({ id }: { id: string }) {
  const path = `/sandbox/${encodeURIComponent(id)}`;
  const { list, version } = useRuns(id);
  const { answer: of, problem, reload } = useLoaded<SandboxDetails>(`/sandboxes/${encodeURIComponent(id)}`, [version]);
  if (!of) {
    return (
      <Page title={`Sandbox ${shortID(id)}`}>
        {problem ? (
          <Failure problem={problem} retry={problem.status === 404 ? undefined : reload} />
        ) : (
          <Loading what="the sandbox" />
        )}
        {problem && (
          <p>
            <a href="/ui/sandboxes">All sandboxes</a>
          </p>
        )}
      </Page>
    );
  }
  const isLive = of.status === "active";
  const running = list.rows.filter(isRunning);
  const name = sessionTitle(of);
  return (
    <Page
      title={name}
      heading={
        <>
          <a class="crumb" href="/ui/sandboxes">
            Sandboxes
          </a>{" "}
          <span class="muted" aria-hidden="true">
            /
          </span>{" "}
          {name}
        </>
      }
      actions={isLive && <Actions path={path} id={id} running={running} changed={reload} />}
    >
      <p class="summary">
        <Status of={of.status} />
        <span>{isLive ? running.length > 0 ? "code runs in it" : "nothing runs in it" : <Ended of={of} />}</span>
        <span class="muted">
          of {of.user_id}, begun <Ago at={of.created_at} />, last used <Ago at={of.last_used_at} />
        </span>
        <Rename path={`${path}/title`} title={of.title ?? ""} renamed={reload} />
      </p>
      {problem && <Failure problem={problem} retry={reload} />}
      <div class="columns">
        <div class="main">
          <Panel title="Variables">
            {isLive ? (
              <VariableList path={path} isRunning={running.length > 0} version={version} />
            ) : (
              <p class="muted body">The variables went with the sandbox. The runs below keep what they showed.</p>
            )}
          </Panel>
          <Panel title="Files that code wrote">
            <ArtifactList path={path} version={version} />
          </Panel>
          {of.config.enable_file_access && (
            <Panel title="Uploads">
              {isLive ? (
                <Uploads id={id} path={path} version={version} />
              ) : (
                <p class="muted body">They went with it.</p>
              )}
            </Panel>
          )}
          <Panel
            title="Executions"
            note="newest first"
            actions={<a href={`/ui/executions?sandbox=${encodeURIComponent(id)}`}>In the list of all</a>}
          >
            {list.rows.length === 0 && !list.isLoading && !list.problem && (
              <p class="muted body">Nothing has run in it.</p>
            )}
            <RunsOfSession runs={list.rows} />
            <More list={list} what="executions" />
          </Panel>
        </div>
        <SandboxFacts of={of} />
      </div>
    </Page>
  );
}

function Ended({ of }: { of: SandboxDetails }) {
  const how: Record<string, string> = {
    deleted: "somebody deleted it",
    expired: "its time was over",
    lost: "the service ended before it did",
  };
  return (
    <>
      {how[of.status] ?? "it has ended"}
      {of.ended_at && (
        <>
          , <Ago at={of.ended_at} />
        </>
      )}
    </>
  );
}

function Actions(props: { path: string; id: string; running: Summary[]; changed: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const attempt = async (action: () => Promise<unknown>) => {
    setProblem(undefined);
    try {
      await action();
    } catch (thrown) {
      const failed = Problem.from(thrown);
      if (failed.status !== 409 && failed.status !== 410) setProblem(failed); // else it has ended meanwhile
    }
    props.changed();
  };
  const stop = () =>
    attempt(() =>
      Promise.all(props.running.map((run) => post(`/executions/${encodeURIComponent(run.execution_id)}/cancel`))),
    );
  return (
    <>
      {problem && (
        <span class="field-error" role="alert">
          {problem.message}
        </span>
      )}
      <a class="button" href={`/ui/play?sandbox=${encodeURIComponent(props.id)}`}>
        Open in the playground
      </a>
      {props.running.length > 0 && (
        <button title="Stops the code. The variables stay" onClick={stop}>
          Stop
        </button>
      )}
      <TwoSteps
        label="Delete"
        confirm="Delete it, with its variables and files"
        danger
        action={() => attempt(() => remove(props.path))}
      />
    </>
  );
}

function Uploads({ id, path, version }: { id: string; path: string; version: number }) {
  const { answer, problem, reload } = useLoaded<UploadList>(`${path}/files`, [version]);
  if (problem) return <Failure problem={problem} retry={reload} />;
  if (!answer) return <Loading what="the uploads" />;
  return (
    <>
      <ul class="entries" aria-label="Uploads">
        {answer.files.map((file) => (
          <li key={file.path}>
            <div class="entry">
              <a href={uploadPath(id, file.path)} download>
                {file.path}
              </a>{" "}
              <span class="muted">{bytes(file.size)}</span>
            </div>
          </li>
        ))}
      </ul>
      <p class="muted body">
        <span>
          {answer.files.length === 0
            ? "None. The playground uploads files, and code reads them in "
            : `${bytes(answer.bytes)} of at most ${bytes(answer.upload_max_bytes)}, in `}
          <code>/data</code>.
        </span>
      </p>
    </>
  );
}

function SandboxFacts({ of }: { of: SandboxDetails }) {
  const runs = of.runs ?? 0;
  return (
    <aside class="facts" aria-label="Facts">
      <h2>Sandbox</h2>
      <dl>
        <dt>User</dt>
        <dd>
          <a href={`/ui/sandboxes?status=any&user=${encodeURIComponent(of.user_id)}`}>{of.user_id}</a>
        </dd>
        <dt>Begun</dt>
        <dd>
          <Ago at={of.created_at} />
        </dd>
        <dt>Runs</dt>
        <dd>{runs >= 1000 ? "1,000 or more" : plural(runs, "run")}</dd>
        {of.expires_at && (
          <>
            <dt>Ends, if unused</dt>
            <dd>
              <Time at={of.expires_at} /> {zone()}
            </dd>
          </>
        )}
        <dt>Level</dt>
        <dd>{of.isolation ? <code>{of.isolation}</code> : "that of each run"}</dd>
        <dt>ID</dt>
        <dd class="mono">{of.sandbox_id}</dd>
      </dl>
      <h2>Limits</h2>
      <dl>
        {limitsInWords(of.config).flatMap(([subject, text]) => [
          <dt key={subject}>{subject}</dt>,
          <dd key={`${subject}, in words`}>{text}</dd>,
        ])}
      </dl>
    </aside>
  );
}
