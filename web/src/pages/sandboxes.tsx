import { useState } from "preact/hooks";
import { remove } from "../api/client";
import { Problem } from "../api/problem";
import type { Sandbox } from "../api/records";
import { Empty, Failure, TwoSteps } from "../parts/feedback";
import { Choice, clearFilters, Filters, isFiltered, TextFilter } from "../parts/filters";
import { Ago, SandboxLink, Status, sandboxAddress, Time, timeHeading } from "../parts/label";
import { ListTable, NoMatch, useList } from "../parts/list";
import { Rename } from "../parts/rename";
import { parameter, setParameters } from "../router";
import { isAdmin } from "../session";
import { Page } from "../shell";
import { sessionTitle } from "./executions_sessions";

const names = ["user", "status"];

// statusQuery returns the status that the service shall list for that of the address: the live sandboxes unless the person
// asks for others.
export function statusQuery(chosen: string): string {
  return chosen === "any" ? "" : chosen || "active";
}

// Sandboxes lists the sandboxes that are there, and those that have ended.
export function Sandboxes() {
  const [problem, setProblem] = useState<Problem>();
  const list = useList<Sandbox>("/sandboxes", "sandboxes", {
    user_id: parameter("user"),
    status: statusQuery(parameter("status")),
  });
  const end = async (sandbox: Sandbox) => {
    setProblem(undefined);
    try {
      await remove(`/sandbox/${encodeURIComponent(sandbox.sandbox_id)}`);
      list.reload();
    } catch (thrown) {
      setProblem(Problem.from(thrown));
    }
  };
  return (
    <Page
      title="Sandboxes"
      intro="The sessions in which code runs. Variables and files of a sandbox stay until it ends."
    >
      <Filters label="Filter sandboxes" names={names}>
        <Choice
          name="status"
          label="Status"
          any="Live"
          value={parameter("status") === "active" ? "" : parameter("status")}
          values={["any", "deleted", "expired", "lost"]}
          texts={{ any: "Live and ended", deleted: "Deleted", expired: "Expired", lost: "Lost with the service" }}
        />
        {isAdmin.value && <TextFilter name="user" label="User" placeholder="User" />}
      </Filters>
      {problem && <Failure problem={problem} />}
      <ListTable
        list={list}
        what="sandboxes"
        id={(s) => s.sandbox_id}
        empty={
          isFiltered(names) ? (
            <NoMatch what="sandboxes" clear={() => clearFilters(names)} />
          ) : (
            <Empty title="No sandbox is live.">
              <a href="/ui/play">The playground</a> makes one for you, <code>POST /sandbox/create</code> for a program.{" "}
              <button onClick={() => setParameters({ status: "any" })}>Show those that have ended</button>
            </Empty>
          )
        }
        columns={[
          { name: "Name", cell: (s) => <Name of={s} renamed={list.reload} /> },
          { name: "Sandbox", cell: (s) => <SandboxLink id={s.sandbox_id} /> },
          { name: "User", cell: (s) => s.user_id },
          { name: "Status", cell: (s) => <Status of={s.status} /> },
          { name: "Created", class: "nowrap", cell: (s) => <Ago at={s.created_at} /> },
          { name: "Last used", class: "nowrap", cell: (s) => <Ago at={s.last_used_at} /> },
          {
            name: timeHeading("Expires"),
            class: "nowrap",
            cell: (s) => (s.ended_at ? <span class="muted">–</span> : <Time at={s.expires_at} />),
          },
          { name: "Ended", class: "nowrap", cell: (s) => <Ago at={s.ended_at} /> },
          {
            name: "Action",
            class: "actions-cell",
            cell: (s) =>
              s.ended_at ? null : (
                <TwoSteps
                  label="Delete"
                  confirm="Delete it, with its variables and files"
                  danger
                  action={() => end(s)}
                />
              ),
          },
        ]}
      />
    </Page>
  );
}

function Name({ of: s, renamed }: { of: Sandbox; renamed: () => void }) {
  return (
    <span class="named">
      <a href={sandboxAddress(s.sandbox_id)}>{sessionTitle(s)}</a>
      <Rename path={`/sandbox/${encodeURIComponent(s.sandbox_id)}/title`} title={s.title ?? ""} renamed={renamed} />
    </span>
  );
}
