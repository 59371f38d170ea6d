import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { isolated } from "../parts/isolated";
import { type Cell, type Column, shownCell } from "./cell";
import { rowHeight } from "./layout";
import type { GridState } from "./state";

const baseRows = 1000; // rows are placed from a multiple of it, so that those that stay are not drawn again

interface Range {
  first: number;
  last: number;
}

interface Drawn {
  cells: Cell[] | undefined;
  starts: number[];
  look: string; // what the row depends on besides its cells
  drawn: JSX.Element;
}

// GridRows draws the rows that are seen, each with the cells that are seen.
export function GridRows({ state, id }: { state: GridState; id: string }) {
  const before = useRef(new Map<number, Drawn>());
  const { model } = state;
  model.version.value;
  const [first, last] = state.seenRows;
  const [firstColumn, lastColumn] = state.seenColumns;
  const slots = Math.ceil(state.viewportHeight / rowHeight) + 2;
  const base = Math.floor(first / baseRows) * baseRows;
  const starts = state.columnStarts;
  const active = state.active.value;
  const { rows: selectedRows, columns: selected } = state.selected;
  const drawn = new Map<number, Drawn>();
  const rows: JSX.Element[] = [];
  for (let index = first; index <= last; index++) {
    const cells = model.row(index);
    const isSelected = state.anchor.value !== undefined && index >= selectedRows[0] && index <= selectedRows[1];
    const activeColumn = active.row === index ? active.column : -1;
    const look = `${base} ${firstColumn} ${lastColumn} ${activeColumn} ${isSelected ? selected.join() : ""}`;
    const known = before.current.get(index);
    if (known && known.cells === cells && known.look === look && known.starts === starts) {
      drawn.set(index, known);
      rows.push(known.drawn);
      continue;
    }
    const made = (
      <Row
        key={index % slots}
        index={index}
        id={id}
        cells={cells}
        columns={model.columns}
        range={{ first: firstColumn, last: lastColumn }}
        starts={starts}
        top={(index - base) * rowHeight}
        active={activeColumn}
        selected={isSelected ? { first: selected[0], last: selected[1] } : undefined}
      />
    );
    drawn.set(index, { cells, look, starts, drawn: made });
    rows.push(made);
  }
  before.current = drawn;
  const move = `translate(${-state.left.value}px, ${base * rowHeight - state.top.value}px)`;
  return (
    <div
      class="grid-rows"
      role="presentation"
      style={{ top: `${state.headHeight}px`, height: `${state.viewportHeight}px` }}
    >
      <div class="grid-moved" role="presentation" style={{ transform: move }}>
        {rows}
      </div>
    </div>
  );
}

function Row(props: {
  index: number;
  id: string;
  cells: Cell[] | undefined;
  columns: Column[];
  range: Range;
  starts: number[];
  top: number;
  active: number;
  selected: Range | undefined;
}) {
  const { index, id, cells, columns, starts, active, selected } = props;
  const shown: JSX.Element[] = [];
  for (let c = props.range.first; c <= props.range.last && c < columns.length; c++) {
    const { kind } = columns[c]!;
    const cell = cells ? shownCell(cells[c] ?? null, kind) : { text: "…", look: "none", isCut: false };
    const looks = ["grid-cell", cell.look && `is-${cell.look}`, kind === "number" && "is-right"];
    if (c === active) looks.push("is-active");
    if (selected && c >= selected.first && c <= selected.last) looks.push("is-selected");
    shown.push(
      <div
        key={c}
        role="gridcell"
        id={c === active ? `${id}-cell` : undefined}
        class={looks.filter(Boolean).join(" ")}
        aria-colindex={c + 2}
        aria-selected={c === active}
        data-column={c}
        style={{ left: `${starts[c]}px`, width: `${starts[c + 1]! - starts[c]!}px` }}
      >
        {cell.look === "json" ? isolated(cell.text) : cell.text}
      </div>,
    );
  }
  return (
    <div role="row" class="grid-row" aria-rowindex={index + 2} data-row={index} style={{ top: `${props.top}px` }}>
      <div role="rowheader" class="grid-number" aria-colindex={1}>
        {String(index + 1).replace(/\B(?=(\d{3})+$)/g, ",")}
      </div>
      {shown}
    </div>
  );
}
