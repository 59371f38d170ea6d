import type { PendingWrite } from "../api/records";
import { Empty, Failure, Loading } from "../parts/feedback";
import { Choice, clearFilters, Filters, isFiltered, TextFilter } from "../parts/filters";
import { More, NoMatch, useList } from "../parts/list";
import { parameter } from "../router";
import { Page } from "../shell";
import { lookForWaiting } from "../waiting";
import { Write } from "./writes_card";
import { isOpen, useNews } from "./writes_list";

const names = ["status", "user"];

// Writes lists the statements that wait for an admin, and below them those that were decided.
export function Writes() {
  const query = { status: parameter("status"), user_id: parameter("user") };
  const list = useList<PendingWrite>("/pending-writes", "pending_writes", query);
  useNews(list, query);
  const waiting = list.rows.filter(isOpen);
  const decided = list.rows.filter((write) => !isOpen(write));
  const draw = (write: PendingWrite) => (
    <Write
      key={write.id}
      of={write}
      changed={(next) => {
        list.replace((other) => (other.id === next.id ? next : other));
        void lookForWaiting();
      }}
    />
  );
  return (
    <Page title="Pending writes" intro="Statements that would change a database. They run when an admin applies them.">
      <Filters label="Filter pending writes" names={names}>
        <Choice
          name="status"
          label="Status"
          any="Any status"
          values={["pending", "applying", "unknown", "applied", "failed", "rejected"]}
        />
        <TextFilter name="user" label="User" placeholder="User" />
      </Filters>
      {list.rows.length === 0 && list.problem && <Failure problem={list.problem} retry={list.reload} />}
      {list.isLoading && <Loading what="the pending writes" />}
      {!list.isLoading &&
        !list.problem &&
        waiting.length === 0 &&
        (isFiltered(names) ? (
          decided.length === 0 && <NoMatch what="writes" clear={() => clearFilters(names)} />
        ) : (
          <Empty title="No statement waits for a decision.">
            In a sandbox with <code>write_policy: "capture"</code>, a statement that writes waits here until an admin
            applies or rejects it. New ones appear by themselves.
          </Empty>
        ))}
      {waiting.map(draw)}
      {decided.length > 0 && <h2 class="section">Decided</h2>}
      {decided.map(draw)}
      {list.rows.length > 0 && <More list={list} what="writes" />}
    </Page>
  );
}
