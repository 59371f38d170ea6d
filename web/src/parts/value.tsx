import { asText, plural } from "../format";

type Row = Record<string, unknown>;

const maxRows = 200;
const maxColumns = 40;

function isFlat(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value) &&
    Object.values(value).every((v) => typeof v !== "object" || v === null);
}

// isTable reports whether a value is a list of flat objects, which is easier to read as a table.
export function isTable(value: unknown): value is Row[] {
  return Array.isArray(value) && value.length > 0 && value.every(isFlat) && Object.keys(value[0] as Row).length > 0;
}

// RowTable shows rows with their columns. Names and values are text.
export function RowTable({ rows, columns, label }: { rows: Row[]; columns?: string[] | undefined; label: string }) {
  const names = (columns ?? [...new Set(rows.slice(0, maxRows).flatMap((row) => Object.keys(row)))]).slice(0, maxColumns);
  const isNumber = (name: string) => rows.every((row) => typeof row[name] === "number" || row[name] == null);
  return (
    <>
      <div class="scroll-x data" tabIndex={0} role="group" aria-label={label}>
        <table>
          <thead>
            <tr>{names.map((name) => <th key={name} scope="col" class={isNumber(name) ? "number" : ""}>{name}</th>)}</tr>
          </thead>
          <tbody>
            {rows.slice(0, maxRows).map((row, index) => (
              <tr key={index}>
                {names.map((name) => (
                  <td key={name} class={isNumber(name) ? "number" : ""}>{cell(row[name])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > maxRows && <p class="muted body">{plural(rows.length - maxRows, "more row")}</p>}
    </>
  );
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
