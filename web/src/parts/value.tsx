import { asText } from "../format";
import type { Ask } from "../grid/grid_bar";
import { isolated } from "./isolated";
import { RowTable } from "./table";

type Row = Record<string, unknown>;

const isRow = (value: unknown): value is Row => typeof value === "object" && value !== null && !Array.isArray(value);

const isFlat = (row: Row) => Object.values(row).every((v) => typeof v !== "object" || v === null);

// isTable reports whether a value is a list of objects that is easier to read as a table: they are flat, or have the same
// keys, as the rows of a database with a JSON column do.
export function isTable(value: unknown): value is Row[] {
  if (!Array.isArray(value) || !value.every(isRow)) return false;
  const names = value.length > 0 ? Object.keys(value[0]!) : [];
  return names.length > 0 && (value.every(isFlat) || value.every((row) => Object.keys(row).join() === names.join()));
}

// Value shows a JSON value. remote is the path of the rows of a table of which the value may have a part.
export function Value(props: { of: unknown; label: string; remote?: string | undefined; ask?: Ask | undefined }) {
  const { of, label, remote, ask } = props;
  if (isTable(of))
    return <RowTable rows={of} label={label} remote={remote} total={remote ? of.length + 1 : undefined} ask={ask} />;
  return (
    <pre class="text" tabIndex={0} role="group" aria-label={label}>
      {typeof of === "string" ? of : isolated(asText(of))}
    </pre>
  );
}
