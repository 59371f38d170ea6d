import { useEffect, useId, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Failure, Loading } from "../parts/feedback";
import { type Ask, copySelection, GridBar } from "./grid_bar";
import { OpenedCell } from "./grid_cell";
import { GridFilters, GridHead, GridStats } from "./grid_head";
import { GridRows } from "./grid_rows";
import { rowHeight } from "./layout";
import type { Source } from "./source";
import { GridState, type Place } from "./state";

export interface GridProps {
  source: Source;
  label: string;
  whole?: { rows: number; columns: number } | undefined; // of the table, if the source may have fewer
  labels?: number | undefined; // columns of labels, which come first and are not counted
  ask?: Ask | undefined;
}

// Grid shows a table of any size: it draws the cells that one sees. One cell is active; its keys are those of a
// spreadsheet.
export function Grid({ source, label, whole, labels, ask }: GridProps) {
  const state = useMemo(() => new GridState(source), [source]);
  state.whole = whole;
  state.labels = labels ?? 0;
  useEffect(() => () => state.end(), [state]);
  const { model } = state;
  model.version.value;
  if (model.problem.value && !model.isLoaded)
    return <Failure problem={model.problem.value} retry={() => state.retry()} />;
  if (!model.isLoaded && model.columns.length === 0) return <Loading what="the rows" />;
  return (
    <div class="grid">
      <Box state={state} label={label} />
      {state.isPartial && (
        <p class="cut">
          {state.keptRows.replace(/^./, (first) => first.toUpperCase())}
          {state.reason?.detail && `: ${state.reason.detail}`}
          {"."}{" "}
          {state.reason?.status === 409 && (
            <button class="link" onClick={() => state.retry()}>
              Ask again
            </button>
          )}
        </p>
      )}
      {model.problem.value && <Failure problem={model.problem.value} retry={() => state.retry()} />}
      <GridBar state={state} label={label} ask={ask} />
    </div>
  );
}

function Box({ state, label }: { state: GridState; label: string }) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const { model } = state;
  model.version.value;
  useLayoutEffect(() => {
    const element = box.current!;
    state.scroller = element;
    state.characterWidth = characterWidth(element);
    const measure = () => {
      const { clientWidth: width, clientHeight: height } = element;
      state.scrollBar = element.offsetHeight - height;
      const known = state.size.peek();
      if (known.width !== width || known.height !== height) state.size.value = { width, height };
      state.showSeen();
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [state]);
  const { width, height } = state.size.value;
  const { active } = state;
  const close = () => {
    state.isOpened.value = false;
    box.current?.focus();
  };
  const extent = { height: `${state.headHeight + state.scale.height}px`, width: `${state.tableWidth}px` };
  const numbers = { "--grid-numbers": `${state.numbersWidth}px`, "--grid-left": `${state.left.value}px` };
  return (
    <>
      <div class="grid-frame">
        <div
          ref={box}
          class="grid-box"
          tabIndex={0}
          role="grid"
          aria-label={label}
          aria-rowcount={model.matching + 1}
          aria-colcount={model.columns.length + 1}
          aria-activedescendant={`${id}-cell`}
          style={{ height: `${state.boxHeight}px` }}
          onScroll={() => state.scrolled()}
          onKeyDown={(event) => pressed(state, event)}
          onPointerDown={(event) => pointed(state, event, event.shiftKey)}
          onPointerMove={(event) => event.buttons === 1 && event.pointerType === "mouse" && pointed(state, event, true)}
          onDblClick={() => {
            if (active.value.row >= 0) state.isOpened.value = true;
          }}
        >
          <div class="grid-extent" role="presentation" style={extent}>
            <div
              class="grid-window"
              role="presentation"
              style={{ width: `${width}px`, height: `${height}px`, ...numbers }}
            >
              <GridHead state={state} id={id} />
              <GridRows state={state} id={id} />
            </div>
          </div>
        </div>
        <GridFilters state={state} />
        <GridStats state={state} />
        {model.isLoaded && model.matching === 0 && (
          <p class="grid-none muted">{model.total === 0 ? "The table has no rows." : "No row matches the filters."}</p>
        )}
      </div>
      {state.isOpened.value && <OpenedCell state={state} close={close} />}
    </>
  );
}

// characterWidth returns the width of a digit in an element.
function characterWidth(element: HTMLElement): number {
  const canvas = document.createElement("canvas").getContext("2d");
  if (!canvas) return 8;
  const { fontSize, fontFamily } = getComputedStyle(element);
  canvas.font = `${fontSize} ${fontFamily}`;
  return canvas.measureText("0000000000").width / 10 || 8;
}

// pointed makes the cell under the pointer active, and sorts by a column whose name it presses.
function pointed(state: GridState, event: PointerEvent, extend: boolean): void {
  const target = event.target as HTMLElement;
  const heading = target.closest<HTMLElement>("[data-heading]");
  if (heading) {
    if (event.type === "pointerdown" && event.button === 0) state.sortBy(Number(heading.dataset["heading"]));
    return;
  }
  const row = target.closest<HTMLElement>("[data-row]");
  if (!row || (event.type === "pointerdown" && event.button !== 0)) return;
  const cell = target.closest<HTMLElement>("[data-column]");
  const place = { row: Number(row.dataset["row"]), column: Number(cell?.dataset["column"] ?? 0) };
  const { row: activeRow, column: activeColumn } = state.active.peek();
  if (event.type === "pointermove" && place.row === activeRow && place.column === activeColumn) return;
  state.go(place, extend);
}

// pressed handles a key, as spreadsheets do. Above the first row are the names of the columns.
function pressed(state: GridState, event: KeyboardEvent): void {
  if (event.target !== event.currentTarget || event.altKey) return;
  const { row, column } = state.active.value;
  const hasControl = event.ctrlKey || event.metaKey;
  const page = Math.max(1, Math.floor(state.viewportHeight / rowHeight) - 1);
  const last: Place = { row: state.model.matching - 1, column: state.model.columns.length - 1 };
  const moves: Record<string, Place> = {
    ArrowUp: { row: row - 1, column },
    ArrowDown: { row: row + 1, column },
    ArrowLeft: { row, column: column - 1 },
    ArrowRight: { row, column: column + 1 },
    PageUp: { row: Math.max(0, row - page), column },
    PageDown: { row: row + page, column },
    Home: hasControl ? { row: 0, column: 0 } : { row, column: 0 },
    End: hasControl ? last : { row, column: last.column },
  };
  const place = Object.hasOwn(moves, event.key) ? moves[event.key] : undefined;
  if (place) {
    state.go(place, event.shiftKey && place.row >= 0);
    state.showStats(state.active.value.row === -1 ? state.active.value.column : undefined);
  } else if (event.key === "Enter") {
    if (row === -1) state.sortBy(column);
    else state.isOpened.value = !state.isOpened.value;
  } else if (event.key === "Escape" && (state.isOpened.value || state.anchor.value || state.shownStats.value)) {
    state.isOpened.value = false;
    state.anchor.value = undefined;
    state.showStats(undefined);
  } else if (hasControl && event.key === "c" && row >= 0) {
    copySelection(state, false).then(
      (said) => (state.message.value = said),
      (thrown: unknown) => (state.message.value = String(thrown)),
    );
  } else return;
  event.preventDefault();
  event.stopPropagation();
}
