import type { AuditEntry } from "../api/records";
import { asText, shortID } from "../format";
import { Empty } from "../parts/feedback";
import { Choice, clearFilters, Filters, isFiltered, TextFilter, TimeChoice, timeNames } from "../parts/filters";
import { sandboxAddress, Time, timeHeading } from "../parts/label";
import { ListTable, NoMatch, useList } from "../parts/list";
import { parameter } from "../router";
import { Page } from "../shell";
import { useTime } from "./statements";

const names = ["user", "action", "object", ...timeNames];
const actions = ["viewed", "exported", "applied", "rejected", "previewed", "resolved", "erased", "created", "revoked"];

// Audit lists who looked at, applied, erased and revoked what.
export function Audit() {
  const list = useList<AuditEntry>("/audit", "entries", {
    user_id: parameter("user"),
    action: parameter("action"),
    object: parameter("object"),
    ...useTime(),
  });
  return (
    <Page title="Audit" intro="Who looked at data of others, or changed what is kept.">
      <Filters label="Filter the audit log" names={names}>
        <Choice name="action" label="Action" any="Any action" values={actions} />
        <TimeChoice />
        <TextFilter name="user" label="User" placeholder="User" />
        <TextFilter name="object" label="Object" placeholder="Object" />
      </Filters>
      <ListTable
        list={list}
        what="entries"
        id={(e) => String(e.id)}
        empty={
          isFiltered(names) ? (
            <NoMatch what="entries" clear={() => clearFilters(names)} />
          ) : (
            <Empty title="The audit log is empty.">
              It names who viewed, exported, applied, rejected, erased, created or revoked something.
            </Empty>
          )
        }
        columns={[
          { name: timeHeading(), class: "nowrap", cell: (e) => <Time at={e.at} /> },
          { name: "User", cell: (e) => e.user_id },
          { name: "Action", cell: (e) => e.action },
          { name: "Object", class: "mono", cell: (e) => <AuditObject name={e.object} /> },
          {
            name: "Detail",
            cell: (e) => (
              <Detail of={e.statement ? { statement: e.statement, ...(e.detail as object | null) } : e.detail} />
            ),
          },
          {
            name: "Key",
            class: "mono",
            cell: (e) =>
              e.key_id && (
                <a href="/ui/keys" title={e.key_id}>
                  {shortID(e.key_id)}
                </a>
              ),
          },
        ]}
      />
    </Page>
  );
}

// AuditObject shortens the id of an object, and links the page that shows the object.
function AuditObject({ name }: { name: string }) {
  const [, kind, id] = /^([^/]+)\/([^/]+)$/.exec(name) ?? [];
  if (!kind || !id) return <>{name}</>;
  const text = `${kind}/${shortID(id)}`;
  const page =
    kind === "execution"
      ? `/ui/executions/${encodeURIComponent(id)}`
      : kind === "sandbox"
        ? sandboxAddress(id)
        : pages[kind];
  return page ? (
    <a href={page} title={name}>
      {text}
    </a>
  ) : (
    <span title={name}>{text}</span>
  );
}

const pages: Record<string, string> = { "pending-write": "/ui/writes", key: "/ui/keys" };

// Detail shows each field of a detail as a line of text.
function Detail({ of }: { of: unknown }) {
  if (of === null || of === undefined || of === "") return null;
  const lines =
    typeof of === "object" && !Array.isArray(of)
      ? Object.entries(of).map(([name, value]) => `${name}: ${asText(value)}`)
      : [asText(of)];
  const text = lines.join("\n");
  return (
    <pre class="clamp" title={text}>
      {text}
    </pre>
  );
}
