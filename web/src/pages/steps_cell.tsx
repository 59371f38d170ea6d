import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Cell, CellStep, Why } from "../api/records";
import { Failure } from "../parts/feedback";

const maxShown = 8; // rows and values of a step that the page shows; the answer has more

// CellOrigin asks for a part of a variable, and lists the rows and cells that it was made from. It replays the run.
export function CellOrigin({ path, name }: { path: string; name: string }) {
  const [part, setPart] = useState("");
  const [cell, setCell] = useState<Cell>();
  const [problem, setProblem] = useState<Problem>();
  const [isLooking, setLooking] = useState(false);
  const request = useRef<AbortController>(undefined);
  useEffect(() => {
    setCell(undefined);
    setProblem(undefined);
    setLooking(false);
    return () => request.current?.abort();
  }, [path, name]);
  const ask = (event: Event) => {
    event.preventDefault();
    request.current?.abort();
    request.current = new AbortController();
    const { signal } = request.current;
    setLooking(true);
    setProblem(undefined);
    get<Why>(`${path}/why`, { name: name + part }, signal)
      .then((why) => setCell(why.cell ?? { value: "", from: [], ends: (why.not_looked_at ?? []).join("; ") }))
      .catch((thrown: unknown) => isAborted(thrown) || setProblem(Problem.from(thrown)))
      .finally(() => !signal.aborted && setLooking(false));
  };
  return (
    <>
      <form class="body" onSubmit={ask}>
        <label>
          A cell at the end: <code>{name}</code>{" "}
          <input
            value={part}
            placeholder=".loc['Oslo', 'price'] or [3]['x']"
            aria-label={`Part of ${name}`}
            onInput={(event) => setPart(event.currentTarget.value)}
          />
        </label>{" "}
        <button disabled={isLooking || part.trim() === ""}>{isLooking ? "Running again…" : "Follow it"}</button>
      </form>
      {problem && <Failure problem={problem} />}
      {cell && <Origin of={cell} />}
    </>
  );
}

// Origin lists the steps of a cell, the last first.
function Origin({ of: cell }: { of: Cell }) {
  return (
    <ul class="story" aria-label="Origin of the cell">
      {cell.value && (
        <li>
          It is <code>{cell.value}</code>
        </li>
      )}
      {cell.from.map((step, index) => (
        <li key={index}>
          <span class="muted">line {step.line}</span> <code>{step.code}</code> {step.what}
          {step.total_rows > 0 && <span class="muted"> {rowsOf(step)}</span>} <Values of={step} />
        </li>
      ))}
      {cell.ends && <li class="muted">Followed until {cell.ends}</li>}
    </ul>
  );
}

// rowsOf returns the rows of a step, such as "2 of 6 rows: 0, 3".
export function rowsOf({ rows, total_rows: total, of }: CellStep): string {
  const shown = rows.slice(0, maxShown);
  return `${total}${of ? ` of ${of}` : ""} rows: ${shown.join(", ")}${total > shown.length ? ", …" : ""}`;
}

function Values({ of: step }: { of: CellStep }) {
  const shown = step.cells.slice(0, maxShown);
  if (shown.length === 0) return null;
  const texts = shown.map(({ column, value }) => (column ? `${column} = ${value}` : value));
  return (
    <code>
      {texts.join(", ")}
      {step.total_cells > shown.length && ", …"}
    </code>
  );
}
