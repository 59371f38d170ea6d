import type { JSX } from "preact";
import { count } from "../format";
import type { Column } from "./cell";
import { shownCell } from "./cell";
import type { Stats } from "./source";
import { type GridState, headingHeight } from "./state";

// GridHead has the names of the columns that are seen.
export function GridHead({ state, id }: { state: GridState; id: string }) {
  const { model } = state;
  model.version.value;
  const [first, last] = state.seenColumns;
  const active = state.active.value;
  const heads: JSX.Element[] = [];
  for (let c = first; c <= last && c < model.columns.length; c++) {
    const isActive = active.row === -1 && active.column === c;
    heads.push(
      <Heading key={c} state={state} column={c} place={placeOf(state, c)} id={isActive ? `${id}-cell` : undefined} />,
    );
  }
  return (
    <div role="row" class="grid-head" aria-rowindex={1} style={{ height: `${state.headHeight}px` }}>
      <div role="columnheader" class="grid-number" aria-colindex={1}>
        <span class="visually-hidden">Row</span>
      </div>
      <div class="grid-moved" role="presentation" style={{ transform: `translateX(${-state.left.value}px)` }}>
        {heads}
      </div>
    </div>
  );
}

const placeOf = ({ columnStarts: starts }: GridState, c: number) => ({
  left: `${starts[c]}px`,
  width: `${starts[c + 1]! - starts[c]!}px`,
});

// GridFilters has a field for each column that is seen.
export function GridFilters({ state }: { state: GridState }) {
  const { model } = state;
  model.version.value;
  if (!state.isFiltering.value) return null;
  const [first, last] = state.seenColumns;
  const fields: JSX.Element[] = [];
  for (let c = first; c <= last && c < model.columns.length; c++) {
    fields.push(
      <input
        key={c}
        style={placeOf(state, c)}
        aria-label={`Filter ${model.columns[c]!.name}`}
        placeholder={model.columns[c]!.kind === "number" ? ">= 10" : "contains"}
        title="A text that the values contain, a comparison such as >= 10 or = text, null, or !null"
        value={state.texts.value[c] ?? ""}
        onInput={(event) => state.filterBy(c, event.currentTarget.value)}
      />,
    );
  }
  const width = state.size.value.width - state.numbersWidth;
  const place = { left: `${state.numbersWidth}px`, top: `${headingHeight}px`, width: `${width}px` };
  return (
    <div class="grid-filters" style={place}>
      <div class="grid-moved" style={{ transform: `translateX(${-state.left.value}px)` }}>
        {fields}
      </div>
    </div>
  );
}

function Heading(props: {
  state: GridState;
  column: number;
  place: { left: string; width: string };
  id: string | undefined;
}) {
  const { state, column: c, place, id } = props;
  const column = state.model.columns[c]!;
  const { sort } = state.model.view;
  const isSorted = sort?.column === c;
  const looks = ["grid-heading", column.kind === "number" && "is-right", id && "is-active"];
  return (
    <div
      role="columnheader"
      id={id}
      class={looks.filter(Boolean).join(" ")}
      style={place}
      aria-colindex={c + 2}
      aria-sort={isSorted ? (sort.descending ? "descending" : "ascending") : "none"}
      data-heading={c}
      onPointerEnter={(event) => event.pointerType === "mouse" && state.showStats(c)}
      onPointerLeave={() => state.showStats(undefined)}
    >
      <span class="grid-name">
        {column.name}
        {isSorted && <span aria-hidden="true">{sort.descending ? " ↓" : " ↑"}</span>}
      </span>
      {column.type && <span class="type">{column.type}</span>}
    </div>
  );
}

// GridStats shows what is known of a column, below its name.
export function GridStats({ state }: { state: GridState }) {
  const shown = state.shownStats.value;
  const column = shown && state.model.columns[shown.column];
  if (!shown || !column) return null;
  const { width } = state.size.value;
  const start = state.numbersWidth + (state.columnStarts[shown.column] ?? 0) - state.left.value;
  const left = Math.max(0, Math.min(start, width - 270));
  return (
    <div class="grid-stats" role="status" style={{ left: `${left}px`, top: `${state.headHeight}px` }}>
      <strong>{column.name}</strong> <span class="muted">{column.type}</span>
      {shown.problem && <p class="muted">{shown.problem.detail || shown.problem.title}</p>}
      {shown.stats ? <StatsList of={shown.stats} column={column} /> : !shown.problem && <p class="muted">Counting…</p>}
    </div>
  );
}

function statLines(of: Stats, column: Column): [string, string][] {
  const value = (cell: Stats["min"]) => shownCell(cell ?? null, column.kind).text;
  const number = (n: number) => shownCell(Number.isInteger(n) ? n : Number(n.toPrecision(6)), "number").text;
  const lines: [string, string][] = [["values", count(of.count - of.missing)]];
  if (of.missing) lines.push(["NULL", count(of.missing)]);
  if (of.nan) lines.push(["NaN", count(of.nan)]);
  if (of.empty) lines.push(["empty", count(of.empty)]);
  lines.push(["distinct", (of.distinct_more ? "more than " : "") + count(of.distinct)]);
  if (of.min !== undefined) lines.push(["min", value(of.min)]);
  if (of.median !== undefined) lines.push(["median", number(of.median)]);
  if (of.mean !== undefined) lines.push(["mean", number(of.mean)]);
  if (of.max !== undefined) lines.push(["max", value(of.max)]);
  if (of.sum !== undefined) lines.push(["sum", number(of.sum)]);
  return lines;
}

function StatsList({ of, column }: { of: Stats; column: Column }) {
  const most = Math.max(1, ...(of.bins ?? []));
  return (
    <>
      <dl>
        {statLines(of, column).map(([name, text]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {of.bins && (
        <div class="grid-bins" aria-hidden="true">
          {of.bins.map((n, index) => (
            <span key={index} style={{ height: `${(n / most) * 100}%` }} />
          ))}
        </div>
      )}
      {of.top && column.kind !== "number" && (
        <ul>
          {of.top.map(({ value, count: n }) => (
            <li key={value}>
              <span class="grid-top">{value === "" ? <span class="muted">empty</span> : value}</span> {count(n)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
