import type { OwnedConnection } from "../api/records";
import { bytes, duration } from "../format";
import { Empty } from "../parts/feedback";
import { Choice, clearFilters, Filters, isFiltered, TextFilter, TimeChoice, timeNames } from "../parts/filters";
import { ExecutionLink, Status, Time, timeHeading } from "../parts/label";
import { ListTable, NoMatch, useList } from "../parts/list";
import { parameter } from "../router";
import { isAdmin } from "../session";
import { Page } from "../shell";
import { useTime } from "./statements";

const names = ["host", "user", "sandbox", "execution", "status", ...timeNames];

// Connections lists the hosts that code connected to, or was refused.
export function Connections() {
  const list = useList<OwnedConnection>("/connections", "connections", {
    host: parameter("host"),
    user_id: parameter("user"),
    sandbox_id: parameter("sandbox"),
    execution_id: parameter("execution"),
    status: parameter("status"),
    ...useTime(),
  });
  return (
    <Page title="Connections" intro="The hosts on the network that code has connected to, or was refused.">
      <Filters label="Filter connections" names={names}>
        <TextFilter name="host" label="Host" placeholder="Host" keys="/" />
        <Choice name="status" label="Outcome" any="Any outcome" values={["allowed", "refused", "failed"]} />
        <TimeChoice />
        {isAdmin.value && <TextFilter name="user" label="User" placeholder="User" />}
      </Filters>
      <ListTable
        list={list}
        what="connections"
        id={(c) => `${c.execution_id} ${c.number}`}
        empty={
          isFiltered(names) ? (
            <NoMatch what="connections" clear={() => clearFilters(names)} />
          ) : (
            <Empty title="No code has connected to a host.">
              A sandbox has no network by default. Create one with <code>enable_network_access</code> and{" "}
              <code>allowed_hosts</code>: its connections appear here, also refused ones.
            </Empty>
          )
        }
        columns={[
          { name: timeHeading(), class: "nowrap", cell: (c) => <Time at={c.started_at} /> },
          { name: "User", cell: (c) => c.user_id },
          { name: "Host", class: "mono", cell: (c) => `${c.host}:${c.port}` },
          { name: "Address", class: "mono", cell: (c) => c.address || "–" },
          {
            name: "Outcome",
            cell: (c) => (
              <>
                <Status of={c.status} />
                {c.reason && <div class="why">{c.reason}</div>}
              </>
            ),
          },
          { name: "Sent", class: "number", cell: (c) => bytes(c.bytes_sent) },
          { name: "Received", class: "number", cell: (c) => bytes(c.bytes_received) },
          { name: "Duration", class: "number", cell: (c) => duration(c.duration_ms) },
          { name: "Execution", cell: (c) => <ExecutionLink id={c.execution_id} /> },
        ]}
      />
    </Page>
  );
}
