import { useState } from "preact/hooks";
import { remove } from "../api/client";
import { Problem } from "../api/problem";
import type { Sandbox } from "../api/records";
import { Empty, Failure, TwoSteps } from "../parts/feedback";
import { Choice, clearFilters, Filters, isFiltered, TextFilter } from "../parts/filters";
import { Ago, SandboxLink, Status, Time, timeHeading } from "../parts/label";
import { ListTable, NoMatch, useList } from "../parts/list";
import { Rename } from "../parts/rename";
import { parameter } from "../router";
import { isAdmin } from "../session";
import { Page } from "../shell";
import { sessionTitle } from "./executions_sessions";

const names = ["user", "status"];

// Sandboxes lists the sandboxes that are there, and those that have ended.
export function Sandboxes() {
  const [problem, setProblem] = useState<Problem>();
  const list = useList<Sandbox>("/sandboxes", "sandboxes", {
    user_id: parameter("user"),
    status: parameter("status"),
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
        <Choice name="status" label="Status" any="Any status" values={["active", "deleted", "expired", "lost"]} />
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
            <Empty title="There are no sandboxes.">
              <a href="/ui/play">The playground</a> makes one for you, <code>POST /sandbox/create</code> for a program.
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
                <TwoSteps label="End" confirm="End it, with its variables" danger action={() => end(s)} />
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
      <a href={`/ui/executions?sandbox=${encodeURIComponent(s.sandbox_id)}`}>{sessionTitle(s)}</a>
      <Rename path={`/sandbox/${encodeURIComponent(s.sandbox_id)}/title`} title={s.title ?? ""} renamed={renamed} />
    </span>
  );
}
