import type { Artifact } from "../api/records";
import { bytes } from "../format";
import { Empty } from "../parts/feedback";
import { clearFilters, Filters, isFiltered, TextFilter, TimeChoice, timeNames } from "../parts/filters";
import { ExecutionLink, Time, timeHeading } from "../parts/label";
import { ListTable, NoMatch, useList } from "../parts/list";
import { parameter } from "../router";
import { isAdmin } from "../session";
import { Page } from "../shell";
import { useTime } from "./statements";

const names = ["text", "user", "sandbox", "execution", ...timeNames];

// Artifacts lists the files that code has produced.
export function Artifacts() {
  const list = useList<Artifact>("/artifacts", "artifacts", {
    text: parameter("text"),
    user_id: parameter("user"),
    sandbox_id: parameter("sandbox"),
    execution_id: parameter("execution"),
    ...useTime(),
  });
  return (
    <Page title="Artifacts" intro="Files that code has left, in all versions. A click on the path downloads one.">
      <Filters label="Filter artifacts" names={names}>
        <TextFilter name="text" label="Text in the path" placeholder="Search paths" keys="/" />
        <TimeChoice />
        {isAdmin.value && <TextFilter name="user" label="User" placeholder="User" />}
      </Filters>
      <ListTable
        list={list}
        what="artifacts"
        id={(a) => a.artifact_id}
        empty={
          isFiltered(names) ? (
            <NoMatch what="artifacts" clear={() => clearFilters(names)} />
          ) : (
            <Empty title="No code has produced a file.">
              Files below <code>/session/artifacts</code> are kept when a run has ended.
            </Empty>
          )
        }
        columns={[
          { name: timeHeading(), class: "nowrap", cell: (a) => <Time at={a.created_at} /> },
          { name: "User", cell: (a) => a.user_id ?? "–" },
          {
            name: "Path",
            cell: (a) => (
              <a href={a.url} download>
                {a.path}
              </a>
            ),
          },
          { name: "Type", cell: (a) => <span class="muted">{a.mime_type}</span> },
          { name: "Size", class: "number", cell: (a) => bytes(a.size) },
          { name: "SHA-256", cell: (a) => <code title={a.sha256}>{a.sha256.slice(0, 12)}</code> },
          { name: "Execution", cell: (a) => <ExecutionLink id={a.execution_id} /> },
        ]}
      />
    </Page>
  );
}
