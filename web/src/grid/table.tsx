import { useMemo } from "preact/hooks";
import { type Cell, type Column, cellOf, kindOf } from "./cell";
import { Grid } from "./grid";
import type { Ask } from "./grid_bar";
import { RecordedSource } from "./recorded";
import { FirstRowsSource, LocalSource, RemoteSource, type Source } from "./source";

type Row = Record<string, unknown>;

export interface TableProps {
  rows: Row[];
  columns?: string[] | undefined;
  types?: string[] | undefined; // of the columns
  total?: number | undefined; // rows of the whole table, if only its first rows are here
  totalColumns?: number | undefined;
  labels?: number | undefined; // columns of labels, which come first and are not counted
  remote?: string | undefined; // the path of the rows of the whole table
  label: string;
  ask?: Ask | undefined;
}

const maxNamed = 1000; // rows whose keys are looked at for columns
const maxTyped = 1000; // rows that the kinds of columns depend on

// Table shows rows as a grid. It asks the service for the rows that are not here.
export function Table(props: TableProps) {
  const { rows, remote, label } = props;
  const source = useMemo(() => sourceOf(props), [rows, remote]);
  const whole = props.total !== undefined && { rows: props.total, columns: props.totalColumns ?? 0 };
  return <Grid source={source} label={label} whole={whole || undefined} labels={props.labels} ask={props.ask} />;
}

function sourceOf({ rows, columns, types, total, totalColumns, remote }: TableProps): Source {
  const names = columns ?? [...new Set(rows.slice(0, maxNamed).flatMap((row) => Object.keys(row)))];
  const cells: Cell[][] = rows.map((row) => names.map((name) => cellOf(row[name])));
  const described: Column[] = names.map((name, c) => {
    const type = types?.[c] ?? "";
    return {
      name,
      type,
      kind: kindOf(
        cells.slice(0, maxTyped).map((row) => row[c]!),
        type,
      ),
    };
  });
  const local = new LocalSource(described, cells, Math.max(totalColumns ?? 0, names.length));
  const isWhole = (total ?? 0) <= rows.length && (totalColumns ?? 0) <= names.length;
  return remote && !isWhole ? new FirstRowsSource(new RemoteSource(remote), local) : local;
}

// RecordedTable shows the rows of a table with so many rows and columns that a recording keeps, at the path of the object.
// The first column has the labels of the rows.
export function RecordedTable(props: { path: string; label: string; rows: number; columns: number }) {
  const { path, label, rows, columns } = props;
  const source = useMemo(() => new RecordedSource(path), [path]);
  return <Grid source={source} label={label} whole={{ rows, columns }} labels={1} />;
}

// RemoteTable shows rows of which none are here.
export function RemoteTable({ path, label, ask }: { path: string; label: string; ask?: Ask | undefined }) {
  const source = useMemo(() => new RemoteSource(path), [path]);
  return <Grid source={source} label={label} ask={ask} />;
}
