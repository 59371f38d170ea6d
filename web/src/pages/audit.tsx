import type { AuditEntry } from "../api/records";
import { asText } from "../format";
import { Empty } from "../parts/feedback";
import { Choice, clearFilters, Filters, isFiltered, TextFilter, TimeChoice, timeNames } from "../parts/filters";
import { Time, timeHeading } from "../parts/label";
import { ListTable, NoMatch, useList } from "../parts/list";
import { parameter } from "../router";
import { Page } from "../shell";
import { useTime } from "./statements";

const names = ["user", "action", "object", ...timeNames];
const actions = ["viewed", "exported", "applied", "rejected", "erased", "created", "revoked"];

// Audit lists who looked at, applied, erased and revoked what.
export function Audit() {
  const list = useList<AuditEntry>("/audit", "entries", {
    user_id: parameter("user"), action: parameter("action"), object: parameter("object"), ...useTime(),
  });
  return (
    <Page title="Audit">
      <Filters label="Filter the audit log" names={names}>
        <Choice name="action" label="Action" any="Any action" values={actions} />
        <TimeChoice />
        <TextFilter name="user" label="User" placeholder="User" />
        <TextFilter name="object" label="Object" placeholder="Object" />
      </Filters>
      <ListTable list={list} what="entries" id={(e) => String(e.id)}
        empty={isFiltered(names) ? <NoMatch what="entries" clear={() => clearFilters(names)} /> : (
          <Empty title="The audit log is empty.">It names who viewed, exported, applied, rejected, erased, created or revoked something.</Empty>
        )}
        columns={[
          { name: timeHeading(), class: "nowrap", cell: (e) => <Time at={e.at} /> },
          { name: "User", cell: (e) => e.user_id },
          { name: "Action", cell: (e) => e.action },
          { name: "Object", class: "mono", cell: (e) => <AuditObject name={e.object} /> },
          { name: "Detail", cell: (e) => e.detail ? <pre class="clamp">{asText(e.detail)}</pre> : null },
          { name: "Key", class: "mono", cell: (e) => e.key_id },
        ]} />
    </Page>
  );
}

// AuditObject links an execution; the other kinds of objects have no page of their own.
function AuditObject({ name }: { name: string }) {
  const execution = /^execution\/([^/]+)$/.exec(name)?.[1];
  return execution ? <a href={`/ui/executions/${encodeURIComponent(execution)}`}>{name}</a> : <>{name}</>;
}
