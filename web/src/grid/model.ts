import { signal } from "@preact/signals";
import { isAborted, Problem } from "../api/problem";
import type { Cell, Column } from "./cell";
import type { Page, Source } from "./source";
import { everything, type View } from "./view";

export const pageRows = 200; // that one request asks for
const maxKeptRows = 6000;
const ahead = 50; // rows beyond those that are seen
const maxCopiedRows = 10_000;

// GridModel has the rows of a table that were loaded, and loads those that are seen. version counts its changes.
export class GridModel {
  readonly version = signal(0);
  readonly problem = signal<Problem | undefined>(undefined);
  columns: Column[] = [];
  totalColumns = 0;
  total = 0; // rows of the table
  matching = 0; // rows that pass the filters
  isLoaded = false; // the first rows of the view
  view: View = everything;
  onRows: () => void = () => {}; // is called when there are more
  private kept = new Map<number, Cell[]>(); // by place in the view
  private numbers = new Map<number, number>(); // of the same rows in the table, from 0
  private seen: [number, number] = [0, pageRows];
  private request: AbortController | undefined;
  private isEnded = false;

  constructor(readonly source: Source) {}

  row(index: number): Cell[] | undefined {
    return this.kept.get(index);
  }

  // number returns the number of a row in the table, from 0, if the row is there.
  number(index: number): number | undefined {
    return this.kept.has(index) ? this.numbers.get(index) : undefined;
  }

  // show loads the rows from first to last, if they are not there.
  show(first: number, last: number): void {
    this.seen = [first, last];
    this.load();
  }

  setView(view: View): void {
    this.view = view;
    this.reset();
  }

  // reset loads the rows again.
  reset(): void {
    this.request?.abort();
    this.request = undefined;
    this.kept = new Map();
    this.numbers = new Map();
    this.isLoaded = false;
    this.problem.value = undefined;
    this.seen = [0, Math.max(this.seen[1] - this.seen[0], 1)];
    this.load();
    this.version.value++;
  }

  end(): void {
    this.isEnded = true;
    this.request?.abort();
  }

  // rows returns all cells of some rows and columns with their whole texts, for a copy or a file, in parts.
  async *rows(first: number, last: number, signal?: AbortSignal): AsyncGenerator<Page> {
    const view = this.view;
    for (let start = first; start <= last; ) {
      const page = await this.source.rows(view, start, Math.min(1000, last - start + 1), signal, true);
      if (page.rows.length === 0) return;
      yield page;
      start += page.rows.length;
    }
  }

  // copied returns the cells of a part of the table.
  async copied(rows: [number, number], columns: [number, number]): Promise<Cell[][]> {
    const out: Cell[][] = [];
    for await (const page of this.rows(rows[0], Math.min(rows[1], rows[0] + maxCopiedRows - 1)))
      out.push(...page.rows.map((row) => row.slice(columns[0], columns[1] + 1)));
    return out;
  }

  private firstMissing(): number | undefined {
    const end = this.isLoaded ? this.matching : Number.POSITIVE_INFINITY;
    const [first, last] = this.seen;
    const places = [first, last];
    for (let index = first; index <= last && index < end; index++) if (!this.kept.has(index)) return index;
    for (let n = 1; n <= ahead; n++) {
      for (const index of [places[1]! + n, places[0]! - n])
        if (index >= 0 && index < end && !this.kept.has(index))
          return index < first ? Math.max(0, index - ahead) : index;
    }
    return undefined;
  }

  private load(): void {
    if (this.isEnded || this.problem.value) return;
    const start = this.firstMissing();
    if (start === undefined) return;
    if (this.request) return; // when it has its answer, it loads what is seen then
    const request = new AbortController();
    try {
      const page = this.source.rows(this.view, start, pageRows, request.signal);
      if (!(page instanceof Promise)) {
        this.take(page);
        return;
      }
      this.request = request;
      page.then(
        (loaded) => {
          if (this.request !== request) return;
          this.request = undefined;
          this.take(loaded);
        },
        (thrown: unknown) => {
          if (this.request !== request) return;
          this.request = undefined;
          if (!isAborted(thrown)) this.problem.value = Problem.from(thrown);
        },
      );
    } catch (thrown) {
      this.problem.value = Problem.from(thrown);
    }
  }

  private take(page: Page): void {
    this.columns = page.columns;
    this.totalColumns = page.total_columns;
    this.total = page.total;
    this.matching = page.matching;
    this.isLoaded = true;
    for (const [n, row] of page.rows.entries()) {
      this.kept.set(page.start + n, row);
      this.numbers.set(page.start + n, page.numbers[n] ?? page.start + n);
    }
    if (this.kept.size > maxKeptRows) {
      const middle = (this.seen[0] + this.seen[1]) / 2;
      for (const index of this.kept.keys()) if (Math.abs(index - middle) > maxKeptRows / 3) this.kept.delete(index);
    }
    this.onRows();
    this.version.value++;
    if (page.rows.length > 0) this.load();
  }
}
