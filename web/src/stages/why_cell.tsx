import { useEffect } from "preact/hooks";
import { count, plural } from "../format";
import { grouped } from "../grid/cell";
import type { TableRows, WhyCell } from "./answer";
import { useAsk } from "./ask";
import { Asking, Stopped, Unanswered } from "./asking";
import { SampleTable, shownOf } from "./sample";
import { because, sameResult } from "./words";

export interface CellPlace {
  row: number; // from 0
  column: string;
  text: string; // the value that the page shows
}

// RowsBehind shows which rows of tables made a cell of a statement's result.
export function RowsBehind({ path, cell, close }: { path: string; cell: CellPlace; close: () => void }) {
  const { answer, problem, isRunning, isStopped, ask, stop } = useAsk<WhyCell>(`${path}/why`);
  const again = () => void ask({ row: cell.row, column: cell.column });
  useEffect(again, [path, cell.row, cell.column]);
  const name = `${cell.column} of row ${count(cell.row + 1)}`;
  return (
    <section class="rows-behind" aria-label={`Rows that made ${name}`}>
      <header>
        <h3>Rows that made {name}</h3>
        <button onClick={close}>Close</button>
      </header>
      {isRunning && <Asking what="Finding the rows behind the cell" stop={stop} />}
      {isStopped && <Stopped again={again} />}
      {problem && <Unanswered problem={problem} again={again} />}
      {answer && !isRunning && <Behind of={answer} shown={cell.text} />}
    </section>
  );
}

const shownValue = (text: string) => (/^-?\d+(\.\d+)?$/.test(text) ? grouped(text) : text);

// differs reports whether two texts are different numbers.
const differs = (a: string, b: string) => a !== "" && Number.isFinite(+a) && Number.isFinite(+b) && +a !== +b;

function Behind({ of: answer, shown }: { of: WhyCell; shown: string }) {
  const value = answer.value ?? "NULL";
  return (
    <>
      <p>
        <code>{answer.column}</code> is <strong>{shownValue(value)}</strong>
        {answer.predicate && (
          <>
            {" "}
            where <code>{answer.predicate}</code>
          </>
        )}
        . <Checked of={answer} />
      </p>
      {differs(shown, value) ? (
        <p class="notice warn">
          The table above has {shownValue(shown)} there: the data has changed since, or the rows came in another order.
        </p>
      ) : (
        sameResult(answer.same_result) && <p class="notice warn">{sameResult(answer.same_result)}</p>
      )}
      {answer.tables.map((table) => (
        <TableBehind key={table.table + table.lines.join()} of={table} />
      ))}
      {answer.not_looked.map((what) => (
        <p key={what} class="muted">
          Not looked at: {what}
        </p>
      ))}
    </>
  );
}

function Checked({ of: { check } }: { of: WhyCell }) {
  if (check.state === "same") return <span class="checked">Checked: these rows alone give the value again.</span>;
  if (check.state === "differs")
    return (
      <>
        These rows alone give {shownValue(check.value ?? "NULL")}:{" "}
        {check.message || "the cell depends on other rows, too"}.
      </>
    );
  return <span class="muted">Not checked{check.message && `: ${check.message}`}.</span>;
}

function TableBehind({ of: table }: { of: TableRows }) {
  const lines = table.lines.length === 1 ? `line ${table.lines[0]}` : `lines ${table.lines.join(", ")}`;
  const isRead = table.is_read !== false;
  return (
    <details class="table-behind" open={isRead}>
      <summary>
        <strong>{table.table}</strong>{" "}
        <span class="muted">
          {table.rows === undefined
            ? `not counted: ${because(table.reason, table.message)}`
            : plural(table.rows, "row")}
          , {lines}
          {!isRead && ", which the column does not read"}
          {!table.is_primary_key && table.rows !== undefined && `, told apart by ${table.key.join(", ")}`}
        </span>
      </summary>
      {table.first && table.first.rows.length > 0 && (
        <>
          <SampleTable of={table.first} label={`Rows of ${table.table}`} />
          {table.rows !== table.first.rows.length && <p class="muted">The first {shownOf(table.first, table.rows)}.</p>}
        </>
      )}
    </details>
  );
}
