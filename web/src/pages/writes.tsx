import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../api/client";
import { Problem } from "../api/problem";
import type { PendingWrite, WritePreview, WriteSample } from "../api/records";
import { asText, fullTime, plural, statementText } from "../format";
import { Empty, Failure, Loading, TwoSteps } from "../parts/feedback";
import { Choice, clearFilters, Filters, isFiltered, TextFilter } from "../parts/filters";
import { ExecutionLink, Status } from "../parts/label";
import { type List, More, NoMatch, useList } from "../parts/list";
import { RowTable } from "../parts/value";
import { parameter } from "../router";
import { Page } from "../shell";
import { changesFirst, withChanges } from "./writes_rows";

const names = ["status", "user"];
const reasonLabel = "Reason (optional)";
const maxReason = 1000; // characters

const newsInterval = 5_000; // milliseconds between two looks for new writes
const newsSize = 100; // writes of a look

// useNews returns how many writes there are that the list does not show, and takes up the decisions about those that it
// shows. New ones are not put above the others, where a person may be about to click. An empty list is loaded again.
function useNews(list: List<PendingWrite>, query: Record<string, string>): number {
  const [count, setCount] = useState(0);
  const current = useRef(list);
  current.current = list;
  const key = JSON.stringify([query, list.isLoading, list.problem?.status]);
  useEffect(() => {
    setCount(0);
    if (list.isLoading || list.problem) return;
    const request = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        if (!document.hidden) {
          const answer = await get<{ pending_writes: PendingWrite[] | null }>(
            "/pending-writes",
            { ...query, limit: newsSize },
            request.signal,
          );
          const latest = new Map((answer.pending_writes ?? []).map((write) => [write.id, write]));
          const { rows, replace, reload } = current.current;
          if (rows.some((row) => (latest.get(row.id)?.status ?? row.status) !== row.status))
            replace((row) => latest.get(row.id) ?? row);
          for (const row of rows) latest.delete(row.id);
          if (rows.length === 0 && latest.size > 0) reload();
          else setCount(latest.size);
        }
      } catch {
        // the next look may succeed
      }
      if (!request.signal.aborted) timer = window.setTimeout(look, newsInterval);
    };
    timer = window.setTimeout(look, newsInterval);
    return () => {
      window.clearTimeout(timer);
      request.abort();
    };
  }, [key]);
  return count;
}

// Writes lists the statements that wait for an admin, each with its plan.
export function Writes() {
  const query = { status: parameter("status"), user_id: parameter("user") };
  const list = useList<PendingWrite>("/pending-writes", "pending_writes", query);
  const news = useNews(list, query);
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
      {news > 0 && (
        <div class="notice" role="status">
          <strong>
            {plural(news, "more write")} {news === 1 ? "is" : "are"} there.
          </strong>
          <button onClick={list.reload}>Show {news === 1 ? "it" : "them"}</button>
        </div>
      )}
      {list.rows.length === 0 && list.problem && <Failure problem={list.problem} retry={list.reload} />}
      {list.isLoading && <Loading what="the pending writes" />}
      {!list.isLoading &&
        !list.problem &&
        list.rows.length === 0 &&
        (isFiltered(names) ? (
          <NoMatch what="writes" clear={() => clearFilters(names)} />
        ) : (
          <Empty title="No statement waits for a decision.">
            In a sandbox with <code>write_policy: "capture"</code>, a statement that writes waits here until an admin
            applies or rejects it.
          </Empty>
        ))}
      {list.rows.map((write) => (
        <Write
          key={write.id}
          of={write}
          changed={(next) => list.replace((other) => (other.id === next.id ? next : other))}
        />
      ))}
      {list.rows.length > 0 && <More list={list} what="writes" />}
    </Page>
  );
}

function Write({ of: write, changed }: { of: PendingWrite; changed: (next: PendingWrite) => void }) {
  const [problem, setProblem] = useState<Problem>();
  const [asking, setAsking] = useState(""); // the decision that waits for its second step
  const decide =
    (what: "apply" | "reject" | "resolve", body = {}) =>
    async (reason: string) => {
      setProblem(undefined);
      try {
        const path = `/pending-writes/${encodeURIComponent(write.id)}/${what}`;
        changed(await post<PendingWrite>(path, reason.trim() ? { ...body, reason } : body));
      } catch (thrown) {
        setProblem(Problem.from(thrown));
      }
    };
  const parameters = Object.entries(write.parameters ?? {});
  return (
    <section class="panel write" aria-label={`Write of ${write.user_id}, ${fullTime(write.created_at)}`}>
      <header>
        <h2>
          <Status of={write.status} />
          <span class="muted">
            {write.user_id}, {fullTime(write.created_at)},{write.database && ` database ${write.database},`} execution{" "}
            <ExecutionLink id={write.execution_id} />
          </span>
        </h2>
        {write.status === "unknown" && (
          <div class="actions">
            <TwoSteps
              label="It was not applied"
              confirm="Not applied: it waits again"
              ask={reasonLabel}
              maxLength={maxReason}
              disabled={asking === "applied"}
              onAsk={(isAsking) => setAsking(isAsking ? "not applied" : "")}
              action={decide("resolve", { applied: false })}
            />
            <TwoSteps
              label="It was applied"
              confirm="Applied: it never runs again"
              ask={reasonLabel}
              maxLength={maxReason}
              disabled={asking === "not applied"}
              onAsk={(isAsking) => setAsking(isAsking ? "applied" : "")}
              action={decide("resolve", { applied: true })}
            />
          </div>
        )}
        {write.status === "pending" && (
          <div class="actions">
            <TwoSteps
              label="Reject"
              confirm="Reject: it never runs"
              danger
              ask={reasonLabel}
              maxLength={maxReason}
              disabled={asking === "apply"}
              onAsk={(isAsking) => setAsking(isAsking ? "reject" : "")}
              action={decide("reject")}
            />
            <TwoSteps
              label="Apply"
              confirm={`Apply to about ${plural(write.row_estimate, "row")}`}
              ask={reasonLabel}
              maxLength={maxReason}
              disabled={asking === "reject"}
              onAsk={(isAsking) => setAsking(isAsking ? "apply" : "")}
              action={decide("apply")}
            />
          </div>
        )}
      </header>
      {problem && <Failure problem={problem} />}
      <div class="body">
        <pre class="statement">{statementText(write.query)}</pre>
        {parameters.length > 0 && (
          <dl>
            {parameters.map(([name, value]) => (
              <>
                <dt key={name} class="mono">
                  :{name}
                  {write.types?.[name] && ` ${write.types[name]}`}
                </dt>
                <dd class="mono">{asText(value)}</dd>
              </>
            ))}
          </dl>
        )}
        <p class="muted">
          {write.status === "applied" && !write.error
            ? `It changed ${plural(write.affected_rows, "row")}.`
            : `PostgreSQL expects to change about ${plural(write.row_estimate, "row")}.`}
          {write.decided_by &&
            ` Decided by ${write.decided_by}${write.decided_at ? `, ${fullTime(write.decided_at)}` : ""}.`}
        </p>
        {write.reason && (
          <p class="reason">
            <span class="muted">Reason:</span> {write.reason}
          </p>
        )}
        {write.error && <p class="why">{write.error}</p>}
        {write.status === "pending" && <Sample of={write} />}
        {write.status === "pending" && <Preview of={write} />}
        {write.plan !== null && write.plan !== undefined && (
          <details>
            <summary>Plan</summary>
            <Plan of={write.plan} />
          </details>
        )}
      </div>
    </section>
  );
}

// Sample shows some of the rows that a write would affect, and their number. They are read when a person opens it,
// because each reading is a query that history keeps.
function Sample({ of: write }: { of: PendingWrite }) {
  return (
    <Loaded<WriteSample>
      path={`/pending-writes/${encodeURIComponent(write.id)}/sample`}
      label="Sample of the rows"
      what="the sample"
    >
      {(sample) => (
        <>
          <p class="muted">
            {sample.affected_rows !== null
              ? `Counted: ${plural(sample.affected_rows, "row")}.`
              : `Not counted: ${sample.count_error}. PostgreSQL expects about ${plural(write.row_estimate, "row")}.`}
          </p>
          {sample.rows.length === 0 ? (
            <p class="muted">No row matches now.</p>
          ) : (
            <>
              <p class="muted">Rows as they are now; at most ten are read.</p>
              <RowTable
                rows={sample.rows}
                columns={changesFirst(Object.keys(sample.rows[0]!))}
                label="Sample of the rows"
              />
            </>
          )}
        </>
      )}
    </Loaded>
  );
}

// Preview shows rows before and after. The write runs and is rolled back when a person opens it.
function Preview({ of: write }: { of: PendingWrite }) {
  return (
    <Loaded<WritePreview>
      path={`/pending-writes/${encodeURIComponent(write.id)}/preview`}
      label="Preview: run it now and roll back"
      what="the preview"
    >
      {(preview) => {
        const rows = preview.rows.map(withChanges);
        const columns = changesFirst([...new Set(rows.flatMap((row) => Object.keys(row)))]);
        return (
          <>
            <p class="muted">
              It changed {plural(preview.affected_rows, "row")}, and was rolled back. At most ten are shown.
            </p>
            {rows.length > 0 && <RowTable rows={rows} columns={columns} label="Rows before and after" />}
          </>
        );
      }}
    </Loaded>
  );
}

// Loaded is a part of the page that sends a request when a person opens it for the first time.
function Loaded<T>(props: { path: string; label: string; what: string; children: (answer: T) => ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const [answer, setAnswer] = useState<T>();
  const [problem, setProblem] = useState<Problem>();
  const load = async () => {
    setProblem(undefined);
    try {
      setAnswer(await post<T>(props.path, {}));
    } catch (thrown) {
      setProblem(Problem.from(thrown));
    }
  };
  return (
    <details
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
        if (event.currentTarget.open && answer === undefined) void load();
      }}
    >
      <summary>{props.label}</summary>
      {!isOpen ? null : problem ? (
        <Failure problem={problem} retry={() => void load()} />
      ) : answer === undefined ? (
        <Loading what={props.what} />
      ) : (
        props.children(answer)
      )}
    </details>
  );
}

interface Node {
  "Node Type"?: string;
  Operation?: string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Plan Rows"?: number;
  "Total Cost"?: number;
  Filter?: string;
  "Index Cond"?: string;
  Plans?: Node[];
}

// Plan shows PostgreSQL's plan as a tree, or as it is if it has another form.
function Plan({ of }: { of: unknown }) {
  const root = Array.isArray(of) ? (of[0] as { Plan?: Node } | undefined)?.Plan : (of as { Plan?: Node }).Plan;
  if (!root) return <pre class="text">{asText(of)}</pre>;
  return (
    <ul class="plan">
      <PlanNode of={root} />
    </ul>
  );
}

function PlanNode({ of: node }: { of: Node }) {
  const condition = node["Index Cond"] ?? node["Filter"];
  return (
    <li>
      <strong>{node["Operation"] ?? node["Node Type"]}</strong>
      {node["Operation"] && <span class="muted"> {node["Node Type"]}</span>}
      {node["Relation Name"] && (
        <>
          {" "}
          on <code>{node["Relation Name"]}</code>
        </>
      )}
      {node["Index Name"] && (
        <>
          {" "}
          by <code>{node["Index Name"]}</code>
        </>
      )}
      {/* PostgreSQL counts the rows that a node returns: one that changes rows returns none. */}
      <span class="muted">
        {" "}
        {node["Node Type"] !== "ModifyTable" && <>about {plural(node["Plan Rows"] ?? 0, "row")}, </>}cost{" "}
        {node["Total Cost"]}
      </span>
      {condition && (
        <div>
          <code>{condition}</code>
        </div>
      )}
      {node["Plans"] && (
        <ul>
          {node["Plans"].map((child, index) => (
            <PlanNode key={index} of={child} />
          ))}
        </ul>
      )}
    </li>
  );
}
