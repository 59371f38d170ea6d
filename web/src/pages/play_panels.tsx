import { useState } from "preact/hooks";
import { count, plural } from "../format";
import { useDatabaseNames } from "../parts/databases";
import { Failure, Loading } from "../parts/feedback";
import { useLoaded } from "../parts/loaded";
import { type Column, maskNote, type Schema, sqlName } from "../parts/sql";
import { VariableList } from "../parts/variables";
import { parameter, setParameters } from "../router";
import { type Example, examples } from "./play_examples";
import type { Session } from "./play_session";

// The panels next to the editor, except that of the files.

export function Examples({
  session,
  use,
  run,
}: {
  session: Session;
  use: (example: Example) => void;
  run: (example: Example) => void;
}) {
  const path = session.state.value === "live" ? `${session.path}/help/examples` : "";
  const { answer } = useLoaded<{ examples: { title: string; code: string }[] }>(path, []);
  const more = (answer?.examples ?? []).map((example): Example => ({ ...example, shows: "" }));
  return (
    <>
      <p class="muted body">
        Examples of this page need the demo data. Open puts the code into the editor; Run also runs it.
      </p>
      <ul class="entries">
        {[...examples, ...more].map((example) => (
          <li key={example.title}>
            <div class="entry">
              <strong>{example.title}</strong>
              {example.shows && <p class="muted">{example.shows}</p>}
            </div>
            <button aria-label={`Open: ${example.title}`} onClick={() => use(example)}>
              Open
            </button>
            <button aria-label={`Run: ${example.title}`} disabled={session.isRunning} onClick={() => run(example)}>
              Run
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

export function Variables({ session }: { session: Session }) {
  if (session.state.value !== "live")
    return <p class="muted body">Run code first. The variables of the session appear here.</p>;
  return <VariableList path={session.path} isRunning={session.isRunning} version={session.changes.value} />;
}

const maxSelected = 12; // columns

function selectLine(table: string, columns: Column[], database: string): string {
  const names = columns.length <= maxSelected ? columns.map((column) => sqlName(column.column_name)).join(", ") : "*";
  const statement = JSON.stringify(`SELECT ${names || "*"} FROM ${table} LIMIT 10`);
  return `rows = await db_query(${statement}${database && `, database=${JSON.stringify(database)}`})\nrows`;
}

export function SchemaBrowser({
  session,
  insert,
  insertLines,
}: {
  session: Session;
  insert: (text: string) => void;
  insertLines: (text: string) => void;
}) {
  const names = useDatabaseNames();
  const database = parameter("database"); // "": the default one
  return (
    <>
      {names.length > 0 && (
        <p class="body">
          <select
            aria-label="Database"
            value={database || names[0]}
            onChange={(event) =>
              setParameters({ database: event.currentTarget.value === names[0] ? "" : event.currentTarget.value }, true)
            }
          >
            {names.map((name, index) => (
              <option key={name} value={name}>
                {name}
                {index === 0 && " (default)"}
              </option>
            ))}
          </select>
        </p>
      )}
      <Tables key={database} session={session} database={database} insert={insert} insertLines={insertLines} />
    </>
  );
}

function Tables({
  session,
  database,
  insert,
  insertLines,
}: {
  session: Session;
  database: string;
  insert: (text: string) => void;
  insertLines: (text: string) => void;
}) {
  const [filter, setFilter] = useState("");
  const { answer, problem, reload } = useLoaded<{ schema: Schema }>(session.schemaPath(database), []);
  if (problem) return <Failure problem={problem} retry={reload} />;
  if (!answer) return <Loading what="the schema" />;
  const { tables, schema, details } = answer.schema;
  const text = filter.trim().toLowerCase();
  const columnsOf = (table: string) => schema[table] ?? [];
  const shown = tables.filter(
    (table) =>
      table.toLowerCase().includes(text) ||
      columnsOf(table).some((column) => column.column_name.toLowerCase().includes(text)),
  );
  return (
    <>
      <p class="body">
        <input
          type="search"
          aria-label="Filter tables and columns"
          placeholder="Table or column"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      </p>
      {tables.length === 0 && <p class="muted body">There is no table that code may read.</p>}
      {tables.length > 0 && shown.length === 0 && (
        <p class="muted body">No table and no column has this in its name.</p>
      )}
      <ul class="entries">
        {shown.map((table) => {
          const about = details[table];
          const columns = columnsOf(table).filter(
            (column) =>
              text === "" || table.toLowerCase().includes(text) || column.column_name.toLowerCase().includes(text),
          );
          return (
            <li key={table}>
              <details open={text !== ""}>
                <summary>
                  <code class="name">{table}</code>{" "}
                  <span class="muted">
                    {about?.table_type !== "table" && `${about?.table_type}, `}
                    {about?.row_estimate != null
                      ? `about ${plural(about.row_estimate, "row")}`
                      : plural(columnsOf(table).length, "column")}
                  </span>
                </summary>
                {about?.comment && <p class="muted body">{about.comment}</p>}
                <p class="schema-actions">
                  <button
                    aria-label={`Insert a query of ${table}`}
                    onClick={() => insertLines(selectLine(table, columnsOf(table), database))}
                  >
                    Insert a query
                  </button>
                  <button aria-label={`Insert the name ${table}`} onClick={() => insert(table)}>
                    Insert the name
                  </button>
                </p>
                <ul class="columns-list">
                  {columns.map((column) => (
                    <li key={column.column_name}>
                      <button class="link" title="Insert the name" onClick={() => insert(sqlName(column.column_name))}>
                        <code>{column.column_name}</code>
                      </button>
                      <span class="muted" title={column.comment ?? undefined}>
                        {column.data_type}
                        {column.is_nullable === "NO" ? "" : ", null"}
                        {column.primary_key && ", key"}
                        {column.references && ` → ${column.references}`}
                      </span>
                      {column.masked && (
                        <span class="masked" title={maskNote}>
                          masked
                        </span>
                      )}
                    </li>
                  ))}
                </ul>
              </details>
            </li>
          );
        })}
      </ul>
    </>
  );
}

export function Helpers({
  session,
  insert,
  begin,
}: {
  session: Session;
  insert: (text: string) => void;
  begin: () => void;
}) {
  const [filter, setFilter] = useState("");
  const groups = Object.entries(session.helpers.value);
  if (session.state.value !== "live") {
    return (
      <p class="muted body">
        The functions that code finds without an import. They are listed when there is a session.{" "}
        <button onClick={begin}>Start one</button>
      </p>
    );
  }
  if (groups.length === 0) return <Loading what="the functions" />;
  const text = filter.trim().toLowerCase();
  const shown = groups.flatMap(([group, helpers]) =>
    helpers
      .filter((helper) => `${helper.name} ${helper.description} ${group}`.toLowerCase().includes(text))
      .map((helper) => ({ ...helper, group })),
  );
  return (
    <>
      <p class="body">
        <input
          type="search"
          aria-label="Filter functions"
          placeholder="Function"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      </p>
      {shown.length === 0 && <p class="muted body">No function matches.</p>}
      <ul class="entries" aria-label={plural(shown.length, "function")}>
        {shown.map((helper) => (
          <li key={helper.name}>
            <details>
              <summary>
                <code class="name">{helper.name}</code> <span class="muted">{helper.group}</span>
              </summary>
              <div class="body">
                <p>
                  <code>{helper.signature}</code>
                </p>
                <p>{helper.description}</p>
                <p>
                  <button aria-label={`Insert ${helper.name}`} onClick={() => insert(helper.name)}>
                    Insert the name
                  </button>
                </p>
              </div>
            </details>
          </li>
        ))}
      </ul>
      <p class="muted body">
        {count(shown.length)} of {plural(groups.flatMap(([, helpers]) => helpers).length, "function")}
      </p>
    </>
  );
}
