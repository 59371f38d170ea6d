import { useState } from "preact/hooks";
import { asText, count, plural } from "../format";

type Row = Record<string, unknown>;

const pageRows = 50;
const maxNamed = 200; // rows whose keys are looked at for columns
const maxColumns = 40;

function isFlat(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    Object.values(value).every((v) => typeof v !== "object" || v === null);
}

// isTable reports whether a value is a list of flat objects, which is easier to read as a table.
export function isTable(value: unknown): value is Row[] {
  return Array.isArray(value) && value.length > 0 && value.every(isFlat) && Object.keys(value[0] as Row).length > 0;
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
                <th key={index} scope="col" class={classes.get(name)}>{name}{types?.[index] && <span class="type">{types[index]}</span>}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(first, last).map((row, index) => (
              <tr key={first + index}>{names.map((name, column) => (
                <td key={column} class={classes.get(name) || widthOf(row[name])}>{cell(row[name])}</td>
              ))}</tr>
            ))}
          </tbody>
        </table>
      </div>
      {(isPaged || total > rows.length || missingColumns > 0) && (
        <div class="pager">
          <span class="muted" role="status">
            {rows.length > 0 ? `Rows ${count(first + 1)}–${count(last)} of ${count(total)}` : `None of ${plural(total, "row")}`}
            {total > rows.length && isPaged && `; the first ${count(rows.length)} are here`}
            {missingColumns > 0 && `; ${plural(missingColumns, "more column")}`}
          </span>
          {isPaged && <button disabled={first === 0} onClick={() => setFirst(first - pageRows)}>Previous</button>}
          {isPaged && <button disabled={last >= rows.length} onClick={() => setFirst(first + pageRows)}>Next</button>}
        </div>
      )}
    </>
  );
}

// widthOf returns the class of a cell: short values, such as a time, stay on one line, and long texts get room.
function widthOf(value: unknown): string {
  if (typeof value !== "string" || value.length <= 40) return "nowrap";
  return value.length > 80 ? "wide" : "";
}

function cell(value: unknown) {
  if (value === null || value === undefined) return <span class="muted">null</span>;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

// Value shows a JSON value.
export function Value({ of, label }: { of: unknown; label: string }) {
  if (isTable(of)) return <RowTable rows={of} label={label} />;
  return <pre class="text" tabIndex={0} role="group" aria-label={label}>{asText(of)}</pre>;
}
