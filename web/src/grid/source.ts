import { get, type Query } from "../api/client";
import { Problem } from "../api/problem";
import { type Cell, type Column, type Kind, numberOf, plain } from "./cell";
import { compare, passes, queryOf, type View } from "./view";

// A source has the rows of a table: those that the page got with a record, or those of the service, a page at a time.

export interface Page {
  columns: Column[];
  total_columns: number; // more than columns if there are too many
  total: number; // rows of the table
  matching: number; // rows that pass the filters
  start: number;
  numbers: number[]; // of the rows in the table, from 0
  rows: Cell[][]; // may be fewer than were asked for
}

export interface Stats {
  count: number;
  missing: number;
  nan?: number;
  empty?: number;
  distinct: number;
  distinct_more?: boolean;
  min?: Cell;
  max?: Cell;
  mean?: number;
  median?: number;
  sum?: number;
  top?: { value: string; count: number }[];
  bins?: number[]; // how many numbers are in each of twelve equal parts of their range
}

export interface Source {
  rows(view: View, start: number, count: number, signal?: AbortSignal, whole?: boolean): Promise<Page> | Page;
  cell(view: View, index: number, column: number): Promise<Cell> | Cell; // with its whole text
  stats(view: View, column: number, signal?: AbortSignal): Promise<Stats> | Stats;
}

// LocalSource has all its rows.
export class LocalSource implements Source {
  private sorted: { view: View; numbers: number[] } | undefined;

  constructor(
    private readonly columns: Column[],
    private readonly all: Cell[][],
    private readonly totalColumns = columns.length,
  ) {}

  rows(view: View, start: number, count: number): Page {
    const numbers = this.numbers(view);
    const shown = numbers.slice(start, start + count);
    return {
      columns: this.columns,
      total_columns: this.totalColumns,
      total: this.all.length,
      matching: numbers.length,
      start,
      numbers: shown,
      rows: shown.map((n) => this.all[n]!),
    };
  }

  cell(view: View, index: number, column: number): Cell {
    return this.all[this.numbers(view)[index] ?? -1]?.[column] ?? null;
  }

  stats(view: View, column: number): Stats {
    return statsOf(
      this.numbers(view).map((n) => this.all[n]![column] ?? null),
      this.columns[column]!.kind,
    );
  }

  private numbers(view: View): number[] {
    if (this.sorted?.view === view) return this.sorted.numbers;
    let numbers = this.all.map((_, n) => n);
    for (const filter of view.filters) {
      const kind = this.columns[filter.column]?.kind ?? "text";
      numbers = numbers.filter((n) => passes(this.all[n]![filter.column] ?? null, filter, kind));
    }
    if (view.sort) {
      const { column, descending } = view.sort;
      const kind = this.columns[column]?.kind ?? "text";
      numbers.sort((a, b) => compare(this.all[a]![column] ?? null, this.all[b]![column] ?? null, kind, descending));
    }
    this.sorted = { view, numbers };
    return numbers;
  }
}

// A session answers one question at a time, so that the tables of a page ask one after the other.
let last: Promise<unknown> = Promise.resolve();
const busyAttempts = 4;
const busyDelay = 400; // milliseconds

function inTurn<T>(ask: () => Promise<T>): Promise<T> {
  const mine = last.then(ask, ask);
  last = mine.catch(() => {});
  return mine;
}

// ask asks again for a moment if the session is busy, perhaps with the question of another page.
async function ask<T>(path: string, query: Query, signal: AbortSignal | undefined): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await get<T>(path, query, signal);
    } catch (thrown) {
      const isBusy = thrown instanceof Problem && thrown.status === 409;
      if (!isBusy || attempt === busyAttempts || signal?.aborted) throw thrown;
      await new Promise((resolve) => window.setTimeout(resolve, busyDelay));
    }
  }
}

// RemoteSource asks the service for rows, at the path of a table.
export class RemoteSource implements Source {
  constructor(private readonly path: string) {}

  rows(view: View, start: number, count: number, signal?: AbortSignal, whole = false): Promise<Page> {
    const query = { ...queryOf(view), start, count, whole: whole ? "true" : undefined };
    return inTurn(() => ask<Page>(this.path, query, signal));
  }

  async cell(view: View, index: number, column: number): Promise<Cell> {
    const query = { ...queryOf(view), start: index, count: 1, column, whole: "true" };
    return (await inTurn(() => ask<Page>(this.path, query, undefined))).rows[0]?.[0] ?? null;
  }

  async stats(view: View, column: number, signal?: AbortSignal): Promise<Stats> {
    const query = { ...queryOf(view), stats: column };
    return (await inTurn(() => ask<{ stats: Stats }>(this.path, query, signal))).stats;
  }
}

// FirstRowsSource asks the service, and has the first rows of the table for the case that the service no longer has it.
// reason is why it has not.
export class FirstRowsSource implements Source {
  reason: Problem | undefined;
  private isGone = false;

  constructor(
    private readonly remote: Source,
    private readonly first: Source,
  ) {}

  async rows(view: View, start: number, count: number, signal?: AbortSignal, whole?: boolean): Promise<Page> {
    if (!this.isGone) {
      try {
        const page = await this.remote.rows(view, start, count, signal, whole);
        this.reason = undefined;
        return page;
      } catch (thrown) {
        if (!isGone(thrown)) throw thrown;
        this.reason = Problem.from(thrown);
        this.isGone = true;
      }
    }
    return this.first.rows(view, start, count);
  }

  // retry asks the service again for the next rows.
  retry(): void {
    this.isGone = false;
  }

  cell(view: View, index: number, column: number): Promise<Cell> | Cell {
    return this.now.cell(view, index, column);
  }

  stats(view: View, column: number, signal?: AbortSignal): Promise<Stats> | Stats {
    return this.now.stats(view, column, signal);
  }

  private get now(): Source {
    return this.isGone ? this.first : this.remote;
  }
}

// isGone reports whether the service has no such table for the caller now: it ended, is busy, or is not the caller's.
const isGone = (thrown: unknown) => thrown instanceof Problem && [403, 404, 409, 410].includes(thrown.status);

const topValues = 5;
const bins = 12;

// statsOf returns what is known of the values of a column.
export function statsOf(cells: Cell[], kind: Kind): Stats {
  const present = cells.filter((cell) => cell !== null);
  const counts = new Map<string, number>();
  for (const cell of present)
    if (!Number.isNaN(numberOf(cell, kind))) counts.set(plain(cell), (counts.get(plain(cell)) ?? 0) + 1);
  const out: Stats = { count: cells.length, missing: cells.length - present.length, distinct: counts.size };
  const all = present.map((cell) => numberOf(cell, kind));
  const nan = all.filter((number) => Number.isNaN(number)).length;
  const empty = present.filter((cell) => cell === "").length;
  if (nan) out.nan = nan;
  if (empty) out.empty = empty;
  if (counts.size < present.length) {
    const top = [...counts].sort((a, b) => b[1] - a[1]).slice(0, topValues);
    out.top = top.map(([value, count]) => ({ value, count }));
  }
  if (kind === "json") return out;
  const ordered = present.filter((_, n) => !Number.isNaN(all[n])).sort((a, b) => compare(a, b, kind, false));
  if (ordered.length > 0) {
    out.min = ordered[0]!;
    out.max = ordered.at(-1)!;
  }
  if (kind === "number") Object.assign(out, numbersOf(all.filter(Number.isFinite) as number[]));
  return out;
}

function numbersOf(numbers: number[]): Partial<Stats> {
  if (numbers.length === 0) return {};
  const ordered = [...numbers].sort((a, b) => a - b);
  const sum = ordered.reduce((total, number) => total + number, 0);
  const middle = ordered.length >> 1;
  const median = ordered.length % 2 ? ordered[middle]! : (ordered[middle - 1]! + ordered[middle]!) / 2;
  const width = (ordered.at(-1)! - ordered[0]!) / bins;
  const parts = new Array<number>(bins).fill(0);
  if (width > 0) for (const number of ordered) parts[Math.min(Math.floor((number - ordered[0]!) / width), bins - 1)]!++;
  return { sum, median, mean: sum / ordered.length, ...(width > 0 ? { bins: parts } : {}) };
}
