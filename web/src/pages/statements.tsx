import { useEffect, useRef, useState } from "preact/hooks";
import { address, get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Statement, TopStatement } from "../api/records";
import { bytes, changedRows, count, duration, fullTime, own, plural, statementText } from "../format";
import { useDatabaseNames } from "../parts/databases";
import { Empty, Failure, Loading } from "../parts/feedback";
import {
  Choice,
  clearFilters,
  Filters,
  isFiltered,
  ReplayChoice,
  TextFilter,
  TimeChoice,
  timeNames,
  timeQuery,
  workQuery,
} from "../parts/filters";
import { ExecutionLink, Status, Time, timeHeading } from "../parts/label";
import { ListTable, NoMatch, Rows, useList } from "../parts/list";
import { useLoaded } from "../parts/loaded";
import { Panel } from "../parts/panel";
import type { Schema } from "../parts/sql";
import { mostSeconds, Stages, StatementRows } from "../parts/stages";
import { here, parameter } from "../router";
import { isAdmin } from "../session";
import { Page } from "../shell";
import { hasRows, queryPath } from "./execution_details";

const outcomes = ["ok", "refused", "failed", "cancelled", "captured"];

// Statements shows what code asked the database: the same statements together, or each by itself.
export function Statements() {
  const isList = parameter("view") === "all";
  return (
    <Page
      title="Statements"
      intro="The SQL that code has sent to the databases, with what was refused and why."
      actions={
        <div class="tabs" role="group" aria-label="View">
          <a href="/ui/statements" aria-current={isList ? undefined : "true"}>
            Top
          </a>
          <a href="/ui/statements?view=all" aria-current={isList ? "true" : undefined}>
            All
          </a>
        </div>
      }
    >
      {isList ? <AllStatements /> : <TopStatements />}
    </Page>
  );
}

const listNames = [
  "user",
  "sandbox",
  "execution",
  "fingerprint",
  "database",
  "table",
  "status",
  "text",
  "replays",
  ...timeNames,
];

function AllStatements() {
  const databases = useDatabaseNames();
  const [shown, setShown] = useState<Statement>();
  const list = useList<Statement>("/statements", "statements", {
    user_id: parameter("user"),
    sandbox_id: parameter("sandbox"),
    execution_id: parameter("execution"),
    fingerprint: parameter("fingerprint"),
    database: parameter("database"),
    table: parameter("table"),
    status: parameter("status"),
    text: parameter("text"),
    ...workQuery(),
    ...useTime(),
  });
  return (
    <>
      <Filters label="Filter statements" names={listNames} texts={{ fingerprint: shapeOf(list.rows) }}>
        <TextFilter name="text" label="Text in the statement" placeholder="Search statements" keys="/" />
        <Choice name="status" label="Outcome" any="Any outcome" values={outcomes} />
        <DatabaseChoice values={databases} />
        <TableChoice />
        <TimeChoice />
        <ReplayChoice />
        {isAdmin.value && <TextFilter name="user" label="User" placeholder="User" />}
      </Filters>
      {shown && <RowsOf statement={shown} close={() => setShown(undefined)} />}
      <ListTable
        list={list}
        what="statements"
        id={(s) => `${s.execution_id} ${s.number}`}
        empty={
          isFiltered(listNames) ? <NoMatch what="statements" clear={() => clearFilters(listNames)} /> : <NoStatements />
        }
        columns={[
          { name: timeHeading(), class: "nowrap", cell: (s) => <Time at={s.started_at} /> },
          { name: "User", cell: (s) => s.user_id },
          ...(databases.length > 0 ? [{ name: "Database", cell: (s: Statement) => s.database }] : []),
          { name: "Statement", class: "sql", cell: (s) => <Clamped query={s.query} /> },
          {
            name: "Outcome",
            cell: (s) => (
              <>
                <Status of={s.status} />
                {s.reason && <div class="why">rule: {s.reason}</div>}
                {s.error && (
                  <div class="why clamp" title={s.error}>
                    {s.error}
                  </div>
                )}
              </>
            ),
          },
          {
            name: "Rows",
            class: "number",
            cell: (s) =>
              hasRows(s) ? (
                <button class="link" title="Shows the rows, if they are kept" onClick={() => setShown(s)}>
                  {changedRows(s)}
                </button>
              ) : (
                changedRows(s)
              ),
          },
          { name: "Size", class: "number", cell: (s) => bytes(s.bytes) },
          { name: "Duration", class: "number", cell: (s) => duration(s.duration_ms) },
          { name: "Execution", cell: (s) => <ExecutionLink id={s.execution_id} /> },
        ]}
      />
    </>
  );
}

// RowsOf shows the rows that a statement returned, from the log of its execution.
function RowsOf({ statement: s, close }: { statement: Statement; close: () => void }) {
  const panel = useRef<HTMLDivElement>(null);
  const [isCounted, setCounted] = useState(false);
  useEffect(() => {
    panel.current?.scrollIntoView({ block: "nearest" });
    setCounted(false);
  }, [s]);
  const path = queryPath(s.execution_id, s.number);
  return (
    <div ref={panel}>
      <Panel
        title="Rows"
        note={statementText(s.query)}
        actions={
          <span class="panel-actions">
            <button
              aria-expanded={isCounted}
              title={`Runs the statement again and counts, for at most ${mostSeconds(s.duration_ms)} s`}
              onClick={() => setCounted(!isCounted)}
            >
              Rows after each line
            </button>
            <button onClick={close}>Close</button>
          </span>
        }
      >
        {isCounted && <Stages key={path} path={path} sql={s.query} label="the statement" />}
        <StatementRows key={path} path={path} label="Rows of the statement" />
      </Panel>
    </div>
  );
}

function DatabaseChoice({ values }: { values: string[] }) {
  return values.length > 0 ? <Choice name="database" label="Database" any="Any database" values={values} /> : null;
}

// TableChoice chooses a table that statements read, also through a view.
function TableChoice() {
  const { answer } = useLoaded<{ schema: Schema }>(address("/database/schema", { database: parameter("database") }));
  return (
    <Choice
      name="table"
      label="Table"
      any="Any table"
      values={tablesToChoose(answer?.schema.tables ?? [], parameter("table"))}
    />
  );
}

// tablesToChoose returns the tables of the database, and the one of the address, which may be gone.
export function tablesToChoose(tables: string[], chosen: string): string[] {
  return !chosen || tables.includes(chosen) ? tables : [chosen, ...tables];
}

const shapeLength = 40; // characters

// shapeOf returns the beginning of the statements that are shown, which is "" before they are loaded.
function shapeOf(rows: Statement[]): string {
  const text = (rows[0]?.query ?? "").trim().replace(/\s+/g, " ");
  return text.length > shapeLength ? `${text.slice(0, shapeLength)}…` : text;
}

function Clamped({ query }: { query: string }) {
  const text = statementText(query);
  return (
    <pre class="clamp" title={text}>
      {text}
    </pre>
  );
}

// useTime keeps the times of a range while the address stays: each draw is at another now.
export function useTime(): { since: string; until: string } {
  const [state, setState] = useState({ key: "", time: { since: "", until: "" } });
  const key = JSON.stringify(timeNames.map(parameter));
  if (state.key === key) return state.time;
  const next = { key, time: timeQuery() };
  setState(next);
  return next.time;
}

function NoStatements() {
  return (
    <Empty title="No code has asked the database yet.">
      Code reads it with <code>await db_query("SELECT …")</code>. Each statement appears here, also a refused one.
    </Empty>
  );
}

const orders: Record<string, string> = {
  total: "Most total time",
  calls: "Most calls",
  mean: "Longest mean",
  p95: "Longest p95",
  rows: "Most rows",
  refused: "Most refusals",
};

interface Top {
  statements: TopStatement[];
  considered: number;
  since?: string;
}

const topNames = ["user", "database", "table", "replays", ...timeNames];

function TopStatements() {
  const databases = useDatabaseNames();
  const [top, setTop] = useState<Top>();
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);
  const order = own(orders, parameter("order")) ? parameter("order") : "total";
  useEffect(() => {
    const request = new AbortController();
    setTop(undefined);
    setProblem(undefined);
    get<Top>(
      "/statements/top",
      {
        user_id: parameter("user"),
        database: parameter("database"),
        table: parameter("table"),
        order,
        limit: 100,
        ...workQuery(),
        ...timeQuery(),
      },
      request.signal,
    ).then(setTop, (thrown) => isAborted(thrown) || setProblem(Problem.from(thrown)));
    return () => request.abort();
  }, [here.value, attempt]);
  return (
    <>
      <Filters label="Choose statements" names={topNames}>
        <Order value={order} />
        <DatabaseChoice values={databases} />
        <TableChoice />
        <TimeChoice unset="24h" />
        <ReplayChoice />
        {isAdmin.value && <TextFilter name="user" label="User" placeholder="User" />}
      </Filters>
      {problem ? (
        <Failure problem={problem} retry={() => setAttempt(attempt + 1)} />
      ) : !top ? (
        <Loading what="the statements" />
      ) : top.statements.length === 0 ? (
        isFiltered(topNames) ? (
          <NoMatch what="statements" clear={() => clearFilters(topNames)} />
        ) : (
          <NoStatements />
        )
      ) : (
        <TopTable top={top} hasDatabases={databases.length > 0} />
      )}
    </>
  );
}

function Order({ value }: { value: string }) {
  return (
    <Choice
      name="order"
      label="Order"
      any={orders["total"]!}
      values={Object.keys(orders).filter((o) => o !== "total")}
      texts={orders}
      value={value === "total" ? "" : value}
    />
  );
}

function TopTable({ top, hasDatabases }: { top: Top; hasDatabases: boolean }) {
  const longest = Math.max(1, ...top.statements.map((s) => s.total_ms));
  return (
    <>
      <p class="muted below-filters">
        {plural(top.statements.length, "shape")}, {plural(top.considered, "call")}
        {top.since && ` since ${fullTime(top.since).replace(/\.\d+/, "")}`}. Statements that differ only in their
        constants have the same shape.
      </p>
      <Rows
        rows={top.statements}
        what="statements by shape"
        id={(s) => `${s.fingerprint} ${s.database}`}
        columns={[
          {
            name: "Statement",
            class: "sql",
            cell: (s) => (
              <>
                <a
                  class="plain"
                  href={
                    "/ui/statements?" +
                    new URLSearchParams({
                      view: "all",
                      fingerprint: s.fingerprint,
                      ...(hasDatabases && s.database && { database: s.database }),
                      ...(parameter("table") && { table: parameter("table") }),
                    })
                  }
                >
                  <Clamped query={s.query} />
                </a>
                {hasDatabases && s.database && <div class="muted">{s.database}</div>}
              </>
            ),
          },
          { name: "Calls", class: "number", cell: (s) => count(s.calls) },
          {
            name: "Total",
            class: "number",
            cell: (s) => (
              <>
                {duration(s.total_ms)}
                <div class="share" aria-hidden="true">
                  <div style={{ width: `${(s.total_ms / longest) * 100}%` }} />
                </div>
              </>
            ),
          },
          { name: "Mean", class: "number", cell: (s) => duration(s.mean_ms) },
          { name: "p95", class: "number", cell: (s) => duration(s.p95_ms) },
          { name: "Longest", class: "number", cell: (s) => duration(s.max_ms) },
          { name: "Rows", class: "number", cell: (s) => count(s.rows) },
          {
            name: "Refused, failed",
            cell: (s) =>
              s.refused + s.failed + s.captured === 0 ? (
                <span class="muted">none</span>
              ) : (
                <>
                  {s.refused > 0 && <div class="why">{count(s.refused)} refused</div>}
                  {s.failed > 0 && <div class="why">{count(s.failed)} failed</div>}
                  {s.captured > 0 && (
                    <div title="An admin decides whether they run">{count(s.captured)} captured, not run</div>
                  )}
                  {Object.entries(s.reasons ?? {}).map(([reason, n]) => (
                    <div key={reason} class="muted">
                      {reason}: {count(n)}
                    </div>
                  ))}
                </>
              ),
          },
          {
            name: "Users",
            class: "users-cell",
            cell: (s) => (
              <>
                {s.main_users.join(", ")}
                {s.users > s.main_users.length && ` and ${count(s.users - s.main_users.length)} more`}
              </>
            ),
          },
          { name: timeHeading("Last"), class: "nowrap", cell: (s) => <Time at={s.last_at} /> },
        ]}
      />
    </>
  );
}
