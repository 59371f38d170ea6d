import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import { count, plural } from "../format";
import { putOnClipboard } from "../parts/feedback";
import { csvLine, plain, tabbed } from "./cell";
import { columnsBeside } from "./layout";
import type { GridState } from "./state";

const fewRows = 20; // of which one sees every one soon

// Ask is a question about a cell: the row is its number in the table, from 0, whatever the order that is shown.
export interface Ask {
  label: string;
  title: string; // what it costs, after the name of the cell
  cell: (cell: { row: number; column: string; text: string }) => void;
}

// GridBar says how much the table has, and has the actions on it.
export function GridBar({ state, label, ask }: { state: GridState; label: string; ask?: Ask | undefined }) {
  const { model } = state;
  model.version.value;
  const said = state.message.value;
  return (
    <div class="grid-bar">
      <span class={said ? "grid-said" : "muted"} role="status">
        {said || <Extent state={state} />}
      </span>
      {model.view.filters.length > 0 && <button onClick={() => state.clearFilters()}>Clear filters</button>}
      {(model.total > fewRows || state.isPartial) && <GoToRow state={state} />}
      {model.total > 1 && (
        <button
          aria-pressed={state.isFiltering.value}
          onClick={() => {
            state.isFiltering.value = !state.isFiltering.value;
            if (!state.isFiltering.value && Object.keys(state.texts.value).length > 0) state.clearFilters();
          }}
        >
          Filter
        </button>
      )}
      {ask && <AskAboutCell state={state} ask={ask} />}
      <CopyCells state={state} />
      <Download state={state} label={label} />
    </div>
  );
}

// AskAboutCell asks about the active cell.
function AskAboutCell({ state, ask }: { state: GridState; ask: Ask }) {
  const { model } = state;
  const { row, column } = state.active.value;
  const name = model.columns[column]?.name;
  const number = model.number(row);
  if (row < 0 || name === undefined || number === undefined) return null;
  return (
    <button
      class="grid-ask"
      title={`Row ${count(number + 1)}, ${name}: ${ask.title}`}
      onClick={() => ask.cell({ row: number, column: name, text: plain(model.row(row)?.[column] ?? null) })}
    >
      {ask.label}
    </button>
  );
}

function Extent({ state }: { state: GridState }) {
  const { model } = state;
  if (!model.isLoaded) return <>Loading the rows…</>;
  const columns = columnsBeside(state.labels, model.columns.length);
  const whole = columnsBeside(
    state.labels,
    Math.max(model.totalColumns, (state.isPartial && state.whole?.columns) || 0),
  );
  return (
    <>
      {model.view.filters.length > 0 && `${count(model.matching)} of `}
      {plural(model.total, "row")}
      {state.isPartial && ` of ${count(state.whole!.rows)} kept`}, {plural(columns, "column")}
      {whole > columns && ` of ${count(whole)}`}
    </>
  );
}

function GoToRow({ state }: { state: GridState }) {
  return (
    <form
      class="grid-goto"
      onSubmit={(event) => {
        event.preventDefault();
        const field = event.currentTarget.elements.namedItem("row") as HTMLInputElement;
        const text = field.value.replace(/[,_\s]/g, "");
        if (/^\d+$/.test(text)) state.goToRow(Number(text));
        else if (text) state.message.value = `“${field.value}” is not the number of a row.`;
      }}
    >
      <label>
        Go to row
        <input name="row" inputMode="numeric" autocomplete="off" />
      </label>
    </form>
  );
}

// useSaid returns what a button says for a moment.
function useSaid(): [string, (text: string) => void] {
  const [said, setSaid] = useState("");
  const timer = useRef(0);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  const say = (text: string) => {
    setSaid(text);
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setSaid(""), 2500);
  };
  return [said, say];
}

// copySelection puts the selected cells on the clipboard, and returns what it has done. Without a selection of several
// cells, it copies the active cell.
export async function copySelection(state: GridState, isAll: boolean): Promise<string> {
  const { model } = state;
  const all = { rows: [0, model.matching - 1], columns: [0, model.columns.length - 1] } as typeof state.selected;
  const { rows, columns } = isAll ? all : state.selected;
  const cells = await model.copied(rows, columns);
  const names = model.columns.slice(columns[0], columns[1] + 1).map(({ name }) => name);
  const isOne = cells.length === 1 && names.length === 1;
  if (!(await putOnClipboard(tabbed(isAll ? [names, ...cells] : cells)))) return "The browser does not allow copying";
  if (isOne) return "Copied the cell";
  return cells.length <= rows[1] - rows[0]
    ? `Copied the first ${count(cells.length)} rows`
    : `Copied ${plural(cells.length, "row")}`;
}

function CopyCells({ state }: { state: GridState }) {
  const [said, say] = useSaid();
  const isAll = state.anchor.value === undefined;
  const copy = async () => {
    try {
      say(await copySelection(state, isAll));
    } catch (thrown) {
      state.message.value = Problem.from(thrown).message;
    }
  };
  return (
    <button
      onClick={copy}
      title={isAll ? "Copies the rows, for a spreadsheet. Ctrl+C copies the selected cells" : undefined}
    >
      <span aria-live="polite">{said || (isAll ? "Copy" : "Copy the selection")}</span>
    </button>
  );
}

// Download writes the rows of the view, with whole texts, into a CSV file.
function Download({ state, label }: { state: GridState; label: string }) {
  const [written, setWritten] = useState<number | undefined>(undefined);
  const request = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => request.current?.abort(), []);
  const download = async () => {
    if (request.current) {
      request.current.abort();
      return;
    }
    const { model } = state;
    const abort = new AbortController();
    request.current = abort;
    const parts: Blob[] = [new Blob([csvLine(model.columns.map(({ name }) => name))])];
    let rows = 0;
    setWritten(0);
    try {
      for await (const page of model.rows(0, model.matching - 1, abort.signal)) {
        if (abort.signal.aborted) return;
        parts.push(new Blob([page.rows.map(csvLine).join("")]));
        rows += page.rows.length;
        setWritten(rows);
        await new Promise((resolve) => window.setTimeout(resolve)); // the page stays usable
      }
      save(new Blob(parts, { type: "text/csv;charset=utf-8" }), label);
    } catch (thrown) {
      if (!abort.signal.aborted) state.message.value = `The file is not complete: ${Problem.from(thrown).message}`;
    } finally {
      request.current = undefined;
      setWritten(undefined);
    }
  };
  return (
    <button onClick={download}>
      {written === undefined ? "Download CSV" : `Stop after ${plural(written, "row")}`}
    </button>
  );
}

function save(file: Blob, label: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${label.replace(/[^\p{L}\p{N} ._-]+/gu, "-").slice(0, 60) || "rows"}.csv`;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
