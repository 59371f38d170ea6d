import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { asText, count, plural } from "../format";
import { Pager } from "./pager";

type Row = Record<string, unknown>;

const pageRows = 50;
const maxNamed = 200; // rows whose keys are looked at for columns
const maxColumns = 40;

const isRow = (value: unknown): value is Row => typeof value === "object" && value !== null && !Array.isArray(value);

const isFlat = (row: Row) => Object.values(row).every((v) => typeof v !== "object" || v === null);

// isTable reports whether a value is a list of objects that is easier to read as a table: they are flat, or have the same
// keys, as the rows of a database with a JSON column do.
export function isTable(value: unknown): value is Row[] {
  if (!Array.isArray(value) || !value.every(isRow)) return false;
  const names = value.length > 0 ? Object.keys(value[0]!) : [];
  return names.length > 0 && (value.every(isFlat) || value.every((row) => Object.keys(row).join() === names.join()));
}

// RowTable shows rows with their columns, a page at a time. Names, types and values are text. total is the number of
// rows of the whole table if only its first rows are there.
export function RowTable(props: {
  rows: Row[];
  columns?: string[] | undefined;
  types?: string[] | undefined; // of the columns
  total?: number | undefined;
  totalColumns?: number | undefined;
  label: string;
}) {
  const { rows, types, label } = props;
  const [first, setFirst] = useState(0);
  const all = props.columns ?? [...new Set(rows.slice(0, maxNamed).flatMap((row) => Object.keys(row)))];
  const names = all.slice(0, maxColumns);
  const isNumber = (name: string) => rows.every((row) => typeof row[name] === "number" || row[name] == null);
  const classes = new Map(names.map((name) => [name, isNumber(name) ? "number" : ""]));
  const total = Math.max(props.total ?? 0, rows.length);
  const missingColumns = Math.max(props.totalColumns ?? 0, all.length) - names.length;
  const last = Math.min(first + pageRows, rows.length);
  const isPaged = rows.length > pageRows;
  return (
    <>
      <div class="scroll-x data" tabIndex={0} role="group" aria-label={label}>
        <table>
          <thead>
            <tr>
              {names.map((name, index) => (
                <th key={index} scope="col" class={classes.get(name)}>
                  {name}
                  {types?.[index] && <span class="type">{types[index]}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(first, last).map((row, index) => (
              <tr key={first + index}>
                {names.map((name, column) => (
                  <td key={column} class={classes.get(name) || widthOf(row[name])}>
                    {cell(row[name])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {(isPaged || total > rows.length || missingColumns > 0) && (
        <Pager what="row" start={first} size={pageRows} total={rows.length} go={setFirst}>
          {rows.length > 0
            ? `Rows ${count(first + 1)}–${count(last)} of ${count(total)}`
            : `None of ${plural(total, "row")}`}
          {total > rows.length && isPaged && `; the first ${count(rows.length)} are here`}
          {missingColumns > 0 && `; ${plural(missingColumns, "more column")}`}
        </Pager>
      )}
    </>
  );
}

// widthOf returns the class of a cell: short values, such as a time, stay on one line, and long texts get room.
function widthOf(value: unknown): string {
  const length =
    typeof value === "string" ? value.length : typeof value === "object" && value ? JSON.stringify(value).length : 0;
  if (length <= 40) return "nowrap";
  return length > 80 ? "wide" : "";
}

function cell(value: unknown) {
  if (value === null || value === undefined) return <span class="muted">null</span>;
  return typeof value === "object" ? isolated(JSON.stringify(value)) : String(value);
}

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const jsonString = /("(?:[^"\\]|\\.)*")/;

// isolated returns a JSON text with its strings isolated if one is written from right to left: otherwise a key and a value
// that are would change places.
function isolated(text: string): ComponentChildren {
  if (!rightToLeft.test(text)) return text;
  return text.split(jsonString).map((part, index) => (index % 2 ? <bdi key={index}>{part}</bdi> : part));
}

// Value shows a JSON value.
export function Value({ of, label }: { of: unknown; label: string }) {
  if (isTable(of)) return <RowTable rows={of} label={label} />;
  return (
    <pre class="text" tabIndex={0} role="group" aria-label={label}>
      {typeof of === "string" ? of : isolated(asText(of))}
    </pre>
  );
}
