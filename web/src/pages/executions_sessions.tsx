import { useState } from "preact/hooks";
import type { Sandbox, Summary } from "../api/records";
import { duration, plural, shortID, titleOf } from "../format";
import { Empty } from "../parts/feedback";
import { TextFilter } from "../parts/filters";
import { Ago, Status } from "../parts/label";
import { More, useList } from "../parts/list";
import { parameter } from "../router";
import { isAdmin } from "../session";
import { Page } from "../shell";

// sessionTitle returns what a session is called: its name, or what its first run is called.
export function sessionTitle(session: Sandbox): string {
  return session.title || titleOf({ code: session.first_run ?? "" }) || `Session ${shortID(session.sandbox_id)}`;
}

// Sessions lists executions by their sessions. The executions of a session are loaded when it is opened.
export function Sessions() {
  const list = useList<Sandbox>("/sandboxes", "sandboxes", { user_id: parameter("user") });
  return (
    <Page
      title="Executions"
      intro="The sessions in which code ran, newest first. Runs without a session, such as those of quick-execute, are in the list of all."
      actions={
        <a class="button" href="/ui/executions">
          All executions
        </a>
      }
    >
      {isAdmin.value && (
        <div class="filters">
          <TextFilter name="user" label="User" placeholder="User" />
        </div>
      )}
      {list.rows.length === 0 && !list.isLoading && !list.problem && <Empty title="There are no sessions." />}
      {list.rows.map((session) => (
        <Session key={session.sandbox_id} of={session} />
      ))}
      <More list={list} what="sessions" />
    </Page>
  );
}

function Session({ of: session }: { of: Sandbox }) {
  const [isOpen, setOpen] = useState(false);
  const runs = session.runs ?? 0;
  return (
    <details class="session panel" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <strong>{sessionTitle(session)}</strong>
        <span class="muted">
          {isAdmin.value && `${session.user_id}, `}
          {runs >= 1000 ? "1,000 runs or more" : plural(runs, "run")}, <Ago at={session.last_used_at} />
        </span>
        <Status of={session.status} />
      </summary>
      {isOpen && <Runs of={session} />}
    </details>
  );
}

function Runs({ of: session }: { of: Sandbox }) {
  const list = useList<Summary>("/executions", "executions", { sandbox_id: session.sandbox_id });
  return (
    <>
      <RunsOfSession runs={list.rows} />
      <More list={list} what="executions" />
    </>
  );
}

// RunsOfSession shows runs of one session, one in a line.
export function RunsOfSession({ runs }: { runs: Summary[] }) {
  return (
    <ul class="runs-of-session">
      {runs.map((e) => (
        <li key={e.execution_id}>
          <span class="muted">
            <Ago at={e.created_at} />
          </span>
          <Status of={e.status} />
          <a href={`/ui/executions/${encodeURIComponent(e.execution_id)}`}>{titleOf(e) || "no code"}</a>
          <span class="muted">{e.completed_at ? duration(e.execution_time * 1000) : "running"}</span>
        </li>
      ))}
    </ul>
  );
}
