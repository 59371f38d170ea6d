import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import { count } from "../format";
import { Copy, Failure, Loading } from "../parts/feedback";
import { isolated } from "../parts/isolated";
import { type Cell, type Column, grouped, isSpecial, plain, shownCell } from "./cell";
import type { GridState } from "./state";

const maxDrawn = 200_000; // characters

// OpenedCell shows the active cell whole, below the table.
export function OpenedCell({ state, close }: { state: GridState; close: () => void }) {
  const { row, column: c } = state.active.value;
  state.model.version.value;
  const column = state.model.columns[c];
  const here = state.model.row(row)?.[c];
  const [whole, setWhole] = useState<{ of: Cell; cell: Cell }>();
  const [problem, setProblem] = useState<Problem>();
  const isCut = here !== undefined && here !== null && isSpecial(here) && here.cut !== undefined;
  useEffect(() => {
    setProblem(undefined);
    if (!isCut) return;
    let isOver = false;
    Promise.resolve(state.source.cell(state.model.view, row, c)).then(
      (cell) => isOver || setWhole({ of: here, cell }),
      (thrown) => isOver || setProblem(Problem.from(thrown)),
    );
    return () => {
      isOver = true;
    };
  }, [here, row, c]);
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.scrollIntoView({ block: "nearest" }), []);
  if (!column || here === undefined) return null;
  const cell = !isCut ? here : whole?.of === here ? whole.cell : undefined;
  return (
    <section ref={section} class="grid-opened" aria-label={`Row ${count(row + 1)}, ${column.name}`}>
      <header>
        <span>
          <strong>{column.name}</strong> <span class="muted">row {count(row + 1)}</span>
          {cell !== undefined && <span class="muted">{describe(cell, column)}</span>}
        </span>
        {cell !== undefined && <Copy label="Copy" text={() => fullText(cell)} />}
        <button onClick={close}>Close</button>
      </header>
      {problem ? (
        <Failure problem={problem} />
      ) : cell === undefined ? (
        <Loading what="the value" />
      ) : (
        <Whole cell={cell} column={column} />
      )}
    </section>
  );
}

function describe(cell: Cell, column: Column): string {
  if (typeof cell === "string" && column.kind !== "number") return `, ${count([...cell].length)} characters`;
  return column.type ? `, ${column.type}` : "";
}

// fullText returns a cell as people read it: JSON with a line for each part.
function fullText(cell: Cell): string {
  if (cell === null || !isSpecial(cell) || cell.json === undefined || cell.cut !== undefined) return plain(cell);
  return JSON.stringify(cell.json, null, 2);
}

function Whole({ cell, column }: { cell: Cell; column: Column }) {
  const shown = shownCell(cell, column.kind);
  if (shown.look === "none") return <p class="muted">{shown.text}</p>;
  const text = shown.look === "number" ? grouped(plain(cell)) : jsonText(cell);
  const isJSON = isSpecial(cell);
  return (
    <pre class="text" tabIndex={0} role="group" aria-label="The value">
      {isJSON ? isolated(text.slice(0, maxDrawn)) : text.slice(0, maxDrawn)}
      {text.length > maxDrawn && `\n… ${count(text.length - maxDrawn)} more characters: copy the value to read them`}
    </pre>
  );
}

// jsonText returns a text as it is, or the lines of the JSON in it.
function jsonText(cell: Cell): string {
  const text = fullText(cell);
  if (typeof cell !== "string" || !/^\s*[[{]/.test(text) || text.length > maxDrawn) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // it only looks like JSON
  }
}
