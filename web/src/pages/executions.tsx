import { effect, untracked } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { follow } from "../api/events";
import type { Summary } from "../api/records";
import { count, plural } from "../format";
import { useDelay } from "../parts/delay";
import { Empty, Failure, Loading } from "../parts/feedback";
import { clearFilters, isFiltered } from "../parts/filters";
import { Ago } from "../parts/label";
import { navigate, parameter, path, query, setParameters } from "../router";
import { isAdmin } from "../session";
import { Page } from "../shell";
import { ChooseRun, Choosing, chosenRuns } from "./executions_choice";
import { type Column, ColumnChoice, Header, isChosen, shownColumns, template, titleOfCell } from "./executions_columns";
import { currentFilter, FilterBar, filterNames } from "./executions_filter";
import { ExecutionList } from "./executions_list";
import { Sessions } from "./executions_sessions";

// The list is kept when one opens an execution, so that one comes back to the same place.
let kept: ExecutionList | undefined;
let lastKey = ""; // of a list that was forgotten
let lastEvent = ""; // the last event that the kept list knows

// keep returns the kept list if it is of the address, or else a new one, which it begins to load.
function keep(): ExecutionList {
  const key = query.peek().toString();
  if (kept?.key === key) return kept;
  kept?.stop();
  kept = new ExecutionList(key, untracked(currentFilter));
  kept.reload();
  return kept;
}

function useList(): ExecutionList {
  const key = query.value.toString();
  const isOpened = useRef(true);
  const list = useMemo(() => {
    const before = kept;
    const wanted = keep();
    if (isOpened.current && (wanted !== before || wanted.scrollTop === 0 || !wanted.hasBegun.peek())) {
      lastEvent = "";
      if (wanted === before) wanted.reload(); // it may be old
    } else if (isOpened.current && !lastEvent) {
      wanted.isStale.value = true; // no event says from where on the feed should tell what happened
    }
    isOpened.current = false;
    return wanted;
  }, [key]);
  useEffect(() => {
    // With a change of the filter the list is asked for at once, and not when the page is drawn again.
    const unfollow = effect(() => {
      if (path.value === "/executions" && query.value) keep();
    });
    return () => {
      unfollow();
      kept?.stop();
    };
  }, []);
  return list;
}

// useFeed follows the executions of the user in the filter, or else of all users, and gives what happens to the kept list. One
// connection serves all lists of a user.
function useFeed(): "connecting" | "live" {
  const [state, setState] = useState<"connecting" | "live">("connecting");
  const user = parameter("user");
  useLayoutEffect(
    () =>
      follow(
        "/executions/events",
        user ? { user_id: user } : {},
        {
          onOpen: () => setState("live"),
          onLost: () => setState("connecting"),
          onEvent: (event) => {
            if (event.id) lastEvent = event.id;
            kept?.receive(event);
          },
        },
        lastEvent,
      ),
    [user],
  );
  return state;
}

// useShown returns the list that was wanted before until there is something to show of the one that is wanted now.
function useShown(list: ExecutionList): ExecutionList {
  const shown = useRef(list);
  if (list.hasBegun.value) shown.current = list;
  return shown.current;
}

// Executions is the list of all executions, newest first, or of sessions with theirs.
export function Executions() {
  return parameter("group") === "session" ? <Sessions /> : <AllExecutions />;
}

function AllExecutions() {
  const list = useList();
  const shown = useShown(list);
  const feed = useFeed();
  const live = list.isLive ? feed : "off";
  return (
    <Page
      title="Executions"
      fill
      intro={
        <>
          Every run of Python and SQL, newest first. Try one in <a href="/ui/play">the playground</a>.
        </>
      }
      actions={
        <>
          <span class={`live ${live}`} role="status">
            <span class="dot" aria-hidden="true" />
            {live === "live" ? "Live" : live === "connecting" ? "Connecting…" : "Not live with this filter"}
          </span>
          <a class="button" href="/ui/executions?group=session">
            By session
          </a>
          <button
            aria-pressed={chosenRuns.value !== undefined}
            onClick={() => (chosenRuns.value = chosenRuns.value ? undefined : [])}
          >
            Compare
          </button>
          <ColumnChoice />
        </>
      }
    >
      <FilterBar />
      <Choosing />
      <LeftOut list={shown} />
      <Rows list={shown} isLate={shown !== list} />
    </Page>
  );
}

const mostCounted = 1000; // by the service

// LeftOut says how many replays and explanations the list does not show.
function LeftOut({ list }: { list: ExecutionList }) {
  const number = list.leftOut.value;
  if (number === 0) return null;
  const text =
    number >= mostCounted
      ? `${count(mostCounted)} or more replays and looks`
      : plural(number, "replay or look", "replays and looks");
  return (
    <p class="left-out muted">
      {text} hidden{" "}
      <button class="link" onClick={() => setParameters({ replays: "shown" })}>
        Show
      </button>
    </p>
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

// slowDelay is the time in milliseconds after which the rows of the former filter are shown as such. Most lists are there sooner.
const slowDelay = 300;

// Rows draws the rows that one sees, and a few more. All rows are equally high, so the place of each is known.
function Rows({ list, isLate }: { list: ExecutionList; isLate: boolean }) {
  list.version.value; // draw again when the list changes
  const height = useRowHeight();
  const isSlow = useDelay(isLate, slowDelay);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ of: list, top: list.scrollTop, height: 800 });
  const total = list.count;
  // The browser tells later that a list which became shorter, or another list, is at another place.
  const top = Math.max(0, Math.min(view.of === list ? view.top : list.scrollTop, total * height - view.height));
  // Only those that one sees are in the first picture of a list.
  const [painted, setPainted] = useState<ExecutionList>();
  const more = painted === list ? overscan : 1;
  const first = Math.max(0, Math.floor(top / height) - more);
  const last = Math.min(total - 1, Math.ceil((top + view.height) / height) + more);
  useEffect(() => setPainted(list), [list]); // after the picture

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    element.scrollTop = list.scrollTop;
    const measure = () =>
      setView((before) => {
        const now = { of: list, top: element.scrollTop, height: element.clientHeight };
        return before.of === list && before.top === now.top && before.height === now.height ? before : now;
      });
    measure(); // an empty list has no height
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [list]);
  useLayoutEffect(() => {
    if (!isLate) list.want(first, last);
  });

  // The row that gets the focus when it is drawn: of a list to which one comes back, the one that was opened.
  const wanted = useRef(list.active);
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
      else if (top + height > element.scrollTop + element.clientHeight)
        element.scrollTop = top + height - element.clientHeight;
      wanted.current = index;
      setView({ of: list, top: element.scrollTop, height: element.clientHeight });
    };
    document.addEventListener("keydown", move);
    return () => document.removeEventListener("keydown", move);
  }, [list, height]);

  const columns = shownColumns.value;
  const rows: JSX.Element[] = [];
  const cache = useRowCache(list, columns);
  const draw = (index: number) => rows.push(cache.row(index, height, list.row(index)));
  for (let index = first; index <= last; index++) draw(index);
  // The row with the focus stays, or the focus would be lost.
  if (list.active >= 0 && list.active < total && (list.active < first || list.active > last)) draw(list.active);
  cache.end();

  const showNew = () => {
    list.showWaiting();
    if (box.current) box.current.scrollTop = 0;
  };
  return (
    <div
      class={`executions${isSlow ? " late" : ""}${isChosen.value ? " chosen" : ""}`}
      aria-busy={isLate}
      style={isChosen.value ? { "--columns": template(columns) } : {}}
    >
      {(list.waiting.value > 0 || list.isStale.value) && (
        <button class="newer primary" onClick={showNew}>
          {list.waiting.value > 0 ? plural(list.waiting.value, "new execution") : "Show what is new"} ↑
        </button>
      )}
      <div class="table" role="table" aria-label="Executions" aria-rowcount={list.isComplete ? total + 1 : -1}>
        <Header columns={columns} />
        <div
          class="scroll"
          role="rowgroup"
          ref={box}
          onScroll={(event) => {
            const { scrollTop, clientHeight } = event.currentTarget;
            list.scrollTop = scrollTop;
            setView({ of: list, top: scrollTop, height: clientHeight });
          }}
        >
          <div class="sizer" role="presentation" style={{ height: `${total * height}px` }}>
            {rows}
          </div>
        </div>
      </div>
      <Ending list={list} />
    </div>
  );
}

// RowCache makes the rows of a list. A row that has not changed is not drawn again. Each row keeps its element, and with it the
// focus; the rows of the next list use the same elements again, because new ones take longer.
class RowCache {
  private next = 0;
  private before = new Map<string, { slot: number; index: number; height: number; of: Summary; drawn: JSX.Element }>();
  private drawn: typeof this.before = new Map();

  constructor(
    readonly list: ExecutionList,
    readonly columns: Column[],
  ) {}

  row(index: number, height: number, of: Summary | undefined): JSX.Element {
    if (!of)
      return (
        <Row key={`missing-${index}`} index={index} height={height} of={of} list={this.list} columns={this.columns} />
      );
    const known = this.before.get(of.execution_id);
    if (known?.index === index && known.height === height && known.of === of) {
      this.drawn.set(of.execution_id, known);
      return known.drawn;
    }
    const slot = known?.slot ?? this.next++;
    const drawn = <Row key={slot} index={index} height={height} of={of} list={this.list} columns={this.columns} />;
    this.drawn.set(of.execution_id, { slot, index, height, of, drawn });
    return drawn;
  }

  // end forgets the rows that were not drawn since it was called last.
  end(): void {
    this.before = this.drawn;
    this.drawn = new Map();
  }
}

function useRowCache(list: ExecutionList, columns: Column[]): RowCache {
  const cache = useRef<RowCache | undefined>(undefined);
  if (cache.current?.list !== list || cache.current.columns !== columns) cache.current = new RowCache(list, columns);
  return cache.current;
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
      {isAdmin.value
        ? "Runs of all users appear here as they begin. "
        : "Your runs appear here as they begin; an admin sees those of all users. "}
      Run an example in <a href="/ui/play">the playground</a>, send code to{" "}
      <code>POST /sandbox/agent/quick-execute</code>, or connect an agent to <code>/mcp</code>.{" "}
      <a href="/docs">The API</a>
    </Empty>
  );
}

function Row(props: {
  index: number;
  height: number;
  of: Summary | undefined;
  list: ExecutionList;
  columns: Column[];
}) {
  const e = props.of;
  const place = { top: `${props.index * props.height}px`, height: `${props.height}px` };
  if (!e)
    return (
      <div role="row" class="row missing" style={place} aria-rowindex={props.index + 2}>
        <span role="cell" class="code">
          Loading…
        </span>
      </div>
    );
  return (
    <div role="row" class="row" style={place} aria-rowindex={props.index + 2} data-index={props.index}>
      <span role="cell" class="time">
        <ChooseRun of={e} />
        <a
          href={`/ui/executions/${encodeURIComponent(e.execution_id)}`}
          onFocus={() => (props.list.active = props.index)}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            props.list.active = props.index;
            navigate(event.currentTarget.href);
          }}
        >
          <Ago at={e.created_at} />
        </a>
      </span>
      {props.columns.map(({ name, cell }) => (
        <span key={name} role="cell" class={name} title={titleOfCell(name, e)}>
          {cell(e)}
        </span>
      ))}
    </div>
  );
}

// address of the list as the person left it, for links back.
export function listAddress(): string {
  const key = kept?.key ?? lastKey;
  return key ? `/ui/executions?${key}` : "/ui/executions";
}

// forgetList lets the list be loaded again when it is shown next.
export function forgetList(): void {
  const key = kept?.key ?? "";
  kept = undefined;
  lastKey = key;
}
