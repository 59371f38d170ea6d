import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import { Empty, Failure, Loading } from "./feedback";

// Lists of the API come in pages. The next one is loaded when one sees the end of the list.

const pageSize = 100;

export interface List<T> {
  rows: T[];
  problem: Problem | undefined;
  isLoading: boolean;
  hasMore: boolean;
  loadMore: () => void;
  reload: () => void;
  replace: (change: (row: T) => T) => void; // takes up what an action changed
  set: (rows: T[]) => void; // takes up what a later look has found
}

interface State<T> {
  rows: T[];
  next: string | undefined; // "": the first page is still to come
  problem: Problem | undefined;
}

const fresh = { rows: [], next: "", problem: undefined };

// useList loads a list, whose rows are in a field of the answer. A list of one page takes no limit.
export function useList<T>(
  path: string,
  field: string,
  query: Record<string, string | undefined>,
  isPaged = true,
): List<T> {
  const [state, setState] = useState<State<T>>(fresh);
  const [attempt, setAttempt] = useState(0);
  const request = useRef<AbortController | undefined>(undefined);
  const loading = useRef(false);
  const key = JSON.stringify([path, query, attempt]);

  const load = async (after: string, before: T[]) => {
    const mine = request.current!;
    loading.current = true;
    try {
      const page = await get<Record<string, unknown>>(
        path,
        isPaged ? { ...query, limit: pageSize, after } : query,
        mine.signal,
      );
      const rows = (page[field] ?? []) as T[];
      if (mine.signal.aborted) return;
      loading.current = false;
      setState({ rows: [...before, ...rows], next: page["next"] as string | undefined, problem: undefined });
    } catch (thrown) {
      if (isAborted(thrown)) return;
      loading.current = false;
      setState({ rows: before, next: after, problem: Problem.from(thrown) });
    }
  };
  useEffect(() => {
    request.current = new AbortController();
    setState(fresh);
    void load("", []);
    return () => request.current?.abort();
  }, [key]);
  return {
    rows: state.rows,
    problem: state.problem,
    isLoading: state.next === "" && !state.problem,
    hasMore: state.next !== undefined,
    loadMore: () => {
      if (!loading.current && state.next) void load(state.next, state.rows);
    },
    reload: () => setAttempt(attempt + 1),
    replace: (change) => setState((now) => ({ ...now, rows: now.rows.map(change) })),
    set: (rows) => setState((now) => ({ ...now, rows })),
  };
}

export interface Column<T> {
  name: string;
  class?: string;
  cell: (row: T) => ComponentChildren;
}

// ListTable shows a list with its columns, or why there is nothing to show.
export function ListTable<T>(props: {
  list: List<T>;
  what: string; // for example "statements"
  id: (row: T) => string;
  columns: Column<T>[];
  empty: ComponentChildren;
}) {
  const { list } = props;
  if (list.rows.length === 0) {
    if (list.problem) return <Failure problem={list.problem} retry={list.reload} />;
    return list.isLoading ? <Loading what={props.what} /> : props.empty;
  }
  return (
    <>
      <Rows rows={list.rows} {...props} />
      <More list={list} what={props.what} />
    </>
  );
}

// Rows is a table. On a narrow screen each row is a block, with the name of the column before each cell. The roles say
// that it is a table all the same.
export function Rows<T>({
  rows,
  what,
  id,
  columns,
}: {
  rows: T[];
  what: string;
  id: (row: T) => string;
  columns: Column<T>[];
}) {
  return (
    <div class="scroll-x list stacked" tabIndex={0} role="group" aria-label={`Table of ${what}`}>
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <th key={column.name} role="columnheader" scope="col" class={column.class}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={id(row)} role="row">
              {columns.map((column) => (
                <td key={column.name} role="cell" class={column.class} data-column={column.name}>
                  <div class="cell">{column.cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// More is at the end of a list.
export function More<T>({ list, what }: { list: List<T>; what: string }) {
  const end = useRef<HTMLDivElement>(null);
  const current = useRef(list);
  current.current = list;
  useEffect(() => {
    if (!end.current || !list.hasMore) return;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some((entry) => entry.isIntersecting)) current.current.loadMore();
      },
      { rootMargin: "400px" },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [list.hasMore, list.rows.length]);
  if (list.problem) return <Failure problem={list.problem} retry={list.loadMore} />;
  if (!list.hasMore) return null;
  return (
    <div ref={end}>
      <Loading what={`more ${what}`} />
    </div>
  );
}

// NoMatch is the empty state of a list that has filters.
export function NoMatch({ what, clear }: { what: string; clear: () => void }) {
  return (
    <Empty title={`No ${what} match these filters.`}>
      <button onClick={clear}>Clear all filters</button>
    </Empty>
  );
}
