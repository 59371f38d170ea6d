import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Problem } from "../api/problem";
import type { Ask } from "../grid/grid_bar";
import type { TableProps } from "../grid/table";
import { Failure, Loading } from "./feedback";

// The grid of tables is loaded with the first table that is shown.

const loaded = signal<typeof import("../grid/table") | undefined>(undefined);
const problem = signal<Problem | undefined>(undefined);

function load(): void {
  problem.value = undefined;
  import("../grid/table").then(
    (grid) => {
      loaded.value = grid;
    },
    (thrown: unknown) => {
      problem.value = Problem.from(thrown);
    },
  );
}

function useGrid() {
  useEffect(() => {
    if (!loaded.peek()) load();
  }, []);
  return loaded.value;
}

const Waiting = () => (problem.value ? <Failure problem={problem.value} retry={load} /> : <Loading what="the table" />);

const tableType = /(^|\.)(DataFrame|Series|ndarray)$/;

// isTableType reports whether values of a Python type have rows.
export const isTableType = (type: string | undefined) => tableType.test(type ?? "");

// RowTable shows rows with their columns. Names, types and values are text.
export function RowTable(props: TableProps) {
  const grid = useGrid();
  return grid ? <grid.Table {...props} /> : <Waiting />;
}

// RecordedTable shows the rows of a table that a recording keeps.
export function RecordedTable(props: { path: string; label: string; rows: number; columns: number }) {
  const grid = useGrid();
  return grid ? <grid.RecordedTable {...props} /> : <Waiting />;
}

// RemoteTable shows the rows that the service has at a path.
export function RemoteTable(props: { path: string; label: string; ask?: Ask | undefined }) {
  const grid = useGrid();
  return grid ? <grid.RemoteTable {...props} /> : <Waiting />;
}
