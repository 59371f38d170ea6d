import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import type { StagesProps } from "../stages/view";
import type { CellPlace } from "../stages/why_cell";
import { Failure, Loading } from "./feedback";
import { RemoteTable } from "./table";

// What the pages know of the stages of statements. The code for them is loaded when somebody asks.

const loaded = signal<typeof import("../stages/parts") | undefined>(undefined);
const problem = signal<Problem | undefined>(undefined);

function load(): void {
  problem.value = undefined;
  import("../stages/parts").then(
    (parts) => {
      loaded.value = parts;
    },
    (thrown: unknown) => {
      problem.value = Problem.from(thrown);
    },
  );
}

function useParts() {
  useEffect(() => {
    if (!loaded.peek()) load();
  }, []);
  return loaded.value;
}

const Waiting = () => (problem.value ? <Failure problem={problem.value} retry={load} /> : <Loading what="the page" />);

// Stages shows a statement with the rows after each of its lines.
export function Stages(props: StagesProps) {
  const parts = useParts();
  return parts ? <parts.StagesView {...props} /> : <Waiting />;
}

function RowsBehind(props: { path: string; cell: CellPlace; close: () => void }) {
  const parts = useParts();
  return parts ? <parts.RowsBehind {...props} /> : <Waiting />;
}

const rowsBehind = {
  label: "Which rows made this cell?",
  title: "the rows of tables that it was made from. Asks the database, for at most 10 s",
};

// StatementRows shows the rows that a statement returned, and on request which rows made a cell of them. path is that of
// the statement.
export function StatementRows({ path, label }: { path: string; label: string }) {
  const [cell, setCell] = useState<CellPlace>();
  return (
    <>
      <RemoteTable path={`${path}/rows`} label={label} ask={{ ...rowsBehind, cell: setCell }} />
      {cell && <RowsBehind path={path} cell={cell} close={() => setCell(undefined)} />}
    </>
  );
}

// mostSeconds returns the most time that the counts of a statement take, from its own in milliseconds.
export const mostSeconds = (ms: number) => Math.min(10, Math.max(2, Math.ceil(ms / 100)));
