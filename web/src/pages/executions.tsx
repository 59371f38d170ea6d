import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Summary } from "../api/records";
import { count, duration, firstLine, megabytes, plural } from "../format";
import { Empty, Failure, Loading } from "../parts/feedback";
import { Status, Time, timeHeading } from "../parts/label";
import { navigate, query } from "../router";
import { isAdmin } from "../session";
import { Page } from "../shell";
import { clearFilters, isFiltered } from "../parts/filters";
import { currentFilter, FilterBar, filterNames } from "./executions_filter";
import { ExecutionList } from "./executions_list";

// The list is kept when one opens an execution, so that one comes back to the same place.
let kept: ExecutionList | undefined;
let lastKey = ""; // of a list that was forgotten

function useList(): ExecutionList {
  const key = query.value.toString();
  const list = useMemo(() => {
    if (kept?.key !== key) kept = new ExecutionList(key, currentFilter());
    if (kept.scrollTop === 0 || !kept.hasBegun.peek()) kept.reload(); // it may be old
    return kept;
  }, [key]);
  useEffect(() => {
    list.start();
    return () => list.stop();
  }, [list]);
  return list;
}

// useShown returns the list that was wanted before until there is something to show of the one that is wanted now.
function useShown(list: ExecutionList): ExecutionList {
  const shown = useRef(list);
  if (list.hasBegun.value) shown.current = list;
  return shown.current;
}

// Executions is the list of all executions, newest first.
export function Executions() {
  const list = useList();
  const shown = useShown(list);
  const live = list.live.value;
  return (
    <Page title="Executions" fill
      intro={<>Every run of Python and SQL, newest first. Try one in <a href="/ui/play">the playground</a>.</>}
      actions={<span class={`live ${live}`} role="status">
        <span class="dot" aria-hidden="true" />
        {live === "live" ? "Live" : live === "connecting" ? "Connecting…" : "Not live with this filter"}
      </span>}>
      <FilterBar />
      <Rows list={shown} isLate={shown !== list} />
    </Page>
  );
}

const narrow = window.matchMedia("(max-width: 760px)");

function useRowHeight(): number {
  const [isNarrow, setNarrow] = useState(narrow.matches);
  useEffect(() => {
    const change = () => setNarrow(narrow.matches);
    narrow.addEventListener("change", change);
    return () => narrow.removeEventListener("change", change);
  }, []);
  return isNarrow ? 62 : 34;
}

const overscan = 12;

// Rows draws the rows that one sees, and a few more. All rows are equally high, so the place of each is known.
function Rows({ list, isLate }: { list: ExecutionList; isLate: boolean }) {
  list.version.value; // draw again when the list changes
  const height = useRowHeight();
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: list.scrollTop, height: 800 });
  const total = list.count;
  const first = Math.max(0, Math.floor(view.top / height) - overscan);
  const last = Math.min(total - 1, Math.ceil((view.top + view.height) / height) + overscan);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    element.scrollTop = list.scrollTop;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [list]);
  useLayoutEffect(() => {
    if (!isLate) list.want(first, last);
  });

  const wanted = useRef(-1); // the row that gets the focus when it is drawn
  useLayoutEffect(() => {
    if (wanted.current < 0) return;
    const link = box.current?.querySelector<HTMLElement>(`[data-index="${wanted.current}"] a`);
    if (!link) return;
    wanted.current = -1;
    link.focus({ preventScroll: true });
  });
  useEffect(() => {
    const move = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, select, textarea")) return;
      const by = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
      if (!by || list.count === 0) return;
      event.preventDefault();
      const index = Math.max(0, Math.min(list.count - 1, list.active + by));
      list.active = index;
      const element = box.current!;
      const top = index * height;
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top + height > element.scrollTop + element.clientHeight) element.scrollTop = top + height - element.clientHeight;
      wanted.current = index;
      setView({ top: element.scrollTop, height: element.clientHeight });
    };
    document.addEventListener("keydown", move);
    return () => document.removeEventListener("keydown", move);
  }, [list, height]);

  const rows: JSX.Element[] = [];
  const draw = (index: number) => {
    const e = list.row(index);
    rows.push(<Row key={e?.execution_id ?? `missing-${index}`} index={index} top={index * height} height={height} of={e}
      onFocus={() => (list.active = index)} />);
  };
  for (let index = first; index <= last; index++) draw(index);
  // The row with the focus stays, or the focus would be lost.
  if (list.active >= 0 && list.active < total && (list.active < first || list.active > last)) draw(list.active);

  const showNew = () => {
    list.showWaiting();
    if (box.current) box.current.scrollTop = 0;
  };
  return (
    <div class={isLate ? "executions late" : "executions"} aria-busy={isLate}>
      {(list.waiting.value > 0 || list.isStale.value) && (
        <button class="newer primary" onClick={showNew}>
          {list.waiting.value > 0 ? plural(list.waiting.value, "new execution") : "Show what is new"} ↑
        </button>
      )}
      <div class="table" role="table" aria-label="Executions" aria-rowcount={list.isComplete ? total + 1 : -1}>
        <div role="rowgroup" class="header">
          <div role="row" aria-rowindex={1} class="row">
            <span role="columnheader" class="time">{timeHeading()}</span>
            <span role="columnheader" class="user">User</span>
            <span role="columnheader" class="kind">Kind</span>
            <span role="columnheader" class="state">Status</span>
            <span role="columnheader" class="code">Code</span>
            <span role="columnheader" class="number">Duration</span>
            <span role="columnheader" class="number cpu">CPU</span>
            <span role="columnheader" class="number queries">Queries</span>
            <span role="columnheader" class="number rows">Rows read</span>
            <span role="columnheader" class="number memory">Memory</span>
          </div>
        </div>
        <div class="scroll" role="rowgroup" ref={box}
          onScroll={(event) => {
            const { scrollTop, clientHeight } = event.currentTarget;
            list.scrollTop = scrollTop;
            setView({ top: scrollTop, height: clientHeight });
          }}>
          <div class="sizer" role="presentation" style={{ height: `${total * height}px` }}>{rows}</div>
        </div>
      </div>
      <Ending list={list} />
    </div>
  );
}

// Ending is below the rows: that more are loading, why there are none, what went wrong.
function Ending({ list }: { list: ExecutionList }) {
  list.version.value;
  if (list.problem.value) return <Failure problem={list.problem.value} retry={() => list.retry()} />;
  if (!list.isComplete) return list.isLoading || list.count === 0 ? <Loading what="executions" /> : null;
  if (list.count > 0) return <p class="ending muted">{plural(list.count, "execution")}</p>;
  if (isFiltered(filterNames)) {
    return (
      <Empty title="No execution matches these filters.">
        <button onClick={() => clearFilters(filterNames)}>Clear all filters</button>
      </Empty>
    );
  }
  return (
    <Empty title={isAdmin.value ? "Nothing has run yet." : "You have run nothing yet."}>
      {isAdmin.value ? "Runs of all users appear here as they begin. " : "Your runs appear here as they begin; an admin sees those of all users. "}
      Run an example in <a href="/ui/play">the playground</a>, send code to <code>POST /sandbox/agent/quick-execute</code>, or connect an agent to <code>/mcp</code>.{" "}
      <a href="/docs">The API</a>
    </Empty>
  );
}

function Row(props: { index: number; top: number; height: number; of: Summary | undefined; onFocus: () => void }) {
  const e = props.of;
  const place = { top: `${props.top}px`, height: `${props.height}px` };
  if (!e) return <div role="row" class="row missing" style={place} aria-rowindex={props.index + 2}><span role="cell" class="code">Loading…</span></div>;
  const isOver = e.completed_at !== null;
  return (
    <div role="row" class="row" style={place} aria-rowindex={props.index + 2} data-index={props.index}>
      <span role="cell" class="time">
        <a href={`/ui/executions/${encodeURIComponent(e.execution_id)}`} onFocus={props.onFocus}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            navigate(event.currentTarget.href);
          }}>
          <Time at={e.created_at} />
        </a>
      </span>
      <span role="cell" class="user" title={e.user_id}>{e.user_id}</span>
      <span role="cell" class="kind">{e.kind}</span>
      <span role="cell" class="state"><Status of={e.status} /></span>
      <span role="cell" class="code" title={e.error ?? undefined}>
        <code>{firstLine(e.code) || "no code"}</code>
        {e.error && <span class="error">{e.error}</span>}
      </span>
      <span role="cell" class="number">{isOver ? duration(e.execution_time * 1000) : "running"}</span>
      <span role="cell" class="number cpu">{isOver ? duration(e.cpu_ms) : "–"}</span>
      <span role="cell" class="number queries">{count(e.queries)}</span>
      <span role="cell" class="number rows">{count(e.rows_read)}</span>
      <span role="cell" class="number memory">{isOver ? megabytes(e.memory_usage) : "–"}</span>
    </div>
  );
}

// address of the list as the person left it, for links back.
export function listAddress(): string {
  const key = kept?.key ?? lastKey;
  return key ? `/ui/?${key}` : "/ui/";
}

// forgetList lets the list be loaded again when it is shown next.
export function forgetList(): void {
  const key = kept?.key ?? "";
  kept = undefined;
  lastKey = key;
}
