import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Cell, CellStep, Why } from "../api/records";
import { count } from "../format";
import { Failure } from "../parts/feedback";
import { isTableType } from "../parts/table";
import { clipped } from "./answer";
import type { Jump } from "./line_address";

const maxShown = 8; // rows and values of a step that the page shows; the answer has more
const hasParts = /^(list|tuple|dict|Rows|defaultdict|OrderedDict|Counter)$/;

// CellOrigin asks for a part of a variable that has parts, and lists the rows and cells that it was made from. It replays
// the run.
export function CellOrigin(props: { path: string; name: string; type: string; jump: Jump }) {
  const { path, name, type, jump } = props;
  const [part, setPart] = useState("");
  const [cell, setCell] = useState<Cell>();
  const [problem, setProblem] = useState<Problem>();
  const [isLooking, setLooking] = useState(false);
  const request = useRef<AbortController>(undefined);
  useEffect(() => {
    setCell(undefined);
    setProblem(undefined);
    setLooking(false);
    setPart("");
    return () => request.current?.abort();
  }, [path, name]);
  if (!isTableType(type) && !hasParts.test(type)) return null;
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
      <form class="why-cell" onSubmit={ask}>
        <label>
          Follow one cell: <code>{name}</code>
          <input
            class="mono"
            value={part}
            placeholder={isTableType(type) ? ".iloc[0, 1] or .loc['Oslo', 'price']" : "[3]['price']"}
            aria-label={`Part of ${name}`}
            spellcheck={false}
            onInput={(event) => setPart(event.currentTarget.value)}
          />
        </label>
        <button disabled={isLooking || part.trim() === ""}>{isLooking ? "Running again…" : "Follow it"}</button>
      </form>
      {problem && <Failure problem={problem} />}
      {cell && <Origin of={cell} jump={jump} />}
    </>
  );
}

// Origin lists the steps of a cell, the last first.
export function Origin({ of: cell, jump }: { of: Cell; jump: Jump }) {
  return (
    <div class="why-part chain">
      <h3>Where this cell came from{cell.value && `: ${clipped(cell.value, 40)}`}</h3>
      <ul aria-label="Origin of the cell">
        {cell.from.map((step, index) => (
          <li key={index}>
            <span class="why-line">{jump({ line: step.line, step: 0 }, `line ${step.line}`)}</span>
            <span>
              <code title={step.code}>{clipped(step.code, 90)}</code>{" "}
              <span class="why-effect">
                <strong>{step.what}</strong>
                {step.total_rows > 0 && `, ${rowsOf(step)}`} <Values of={step} />
              </span>
            </span>
          </li>
        ))}
        {cell.ends && (
          <li class="muted">
            <span class="why-line" />
            <span>Followed until {cell.ends}</span>
          </li>
        )}
      </ul>
    </div>
  );
}

// rowsOf returns the rows of a step, such as "2 of 6 rows: 0, 3".
export function rowsOf({ rows, total_rows: total, of }: CellStep): string {
  const shown = rows.slice(0, maxShown);
  return `${count(total)}${of ? ` of ${count(of)}` : ""} rows: ${shown.join(", ")}${total > shown.length ? ", …" : ""}`;
}

function Values({ of: step }: { of: CellStep }) {
  const shown = step.cells.slice(0, maxShown);
  if (shown.length === 0) return null;
  const column = shown[0]!.column;
  const isOne = shown.every((each) => each.column === column);
  const texts = shown.map((each) => (isOne || !each.column ? each.value : `${each.column} = ${each.value}`));
  return (
    <code>
      {isOne && column && `${column}: `}
      {texts.join(", ")}
      {step.total_cells > shown.length && ", …"}
    </code>
  );
}
