import { signal } from "@preact/signals";
import { get } from "../api/client";
import type { ServerEvent } from "../api/events";
import { isAborted, Problem } from "../api/problem";
import type { Summary } from "../api/records";
import type { Filter } from "./executions_filter";

const firstSize = 100; // rows of the first page, which is there soonest
const maxSize = 1000; // rows of a page, which the API allows
const maxRows = 8000; // in memory; others are loaded again by the cursor of their page
const minAhead = 50; // rows that are loaded behind the visible ones; further down, as many as are above
const maxAhead = 4000;
const maxWaiting = 1000; // new rows that are kept while the person reads further down

interface ListPage {
  after: string;
  limit: number;
  count: number;
  rows: Summary[] | undefined; // undefined: forgotten, or not there yet
  used: number; // when it was last shown, for forgetting
}

// ExecutionList is the executions that match a filter, newest first. It holds those that one looks at, loads further
// pages on demand, and takes up what happens meanwhile. Whoever draws it reads version, which changes with it.
export class ExecutionList {
  readonly version = signal(0);
  readonly problem = signal<Problem | undefined>(undefined);
  readonly hasBegun = signal(false); // there is something to show: the first page, or why it is missing
  readonly waiting = signal(0); // new rows that are not shown yet
  readonly isStale = signal(false); // events are missing: only loading again shows all
  readonly leftOut = signal(0); // replays and explanations that the filter hides; 1000: or more
  scrollTop = 0; // where the person was, for coming back
  active = -1;

  private pages: ListPage[] = [];
  private next: string | undefined = "";
  private newer: Summary[] = []; // began after the first page was loaded
  private held: Summary[] = [];
  private arrived: Summary[] | undefined; // while the first page is loaded, which may be older
  private wanted: [first: number, last: number] = [0, 0];
  private loading = false;
  private clock = 0;
  private request = new AbortController();
  private drawing = false;
  private again = () => {}; // loads what could not be loaded

  constructor(
    readonly key: string,
    private readonly filter: Filter,
  ) {}

  get count(): number {
    return this.newer.length + this.pages.reduce((sum, page) => sum + page.count, 0);
  }

  get isComplete(): boolean {
    return this.next === undefined;
  }

  get isLoading(): boolean {
    return this.loading;
  }

  // row returns a row, or undefined if it has to be loaded.
  row(index: number): Summary | undefined {
    if (index < this.newer.length) return this.newer[index];
    index -= this.newer.length;
    for (const page of this.pages) {
      if (index < page.count) {
        page.used = ++this.clock;
        return page.rows?.[index];
      }
      index -= page.count;
    }
    return undefined;
  }

  // want loads what is missing of the rows from first to last, and further pages if these rows come near the end.
  want(first: number, last: number): void {
    this.wanted = [first, last];
    if (this.pages.length > 0) this.loadWanted(); // reload loads the first page
  }

  private loadWanted(): void {
    const [first, last] = this.wanted;
    let begin = this.newer.length;
    for (const page of this.pages) {
      const end = begin + page.count;
      if (!page.rows && first < end && last >= begin) this.loadAgain(page);
      begin = end;
    }
    const ahead = Math.min(maxAhead, Math.max(minAhead, last));
    if (last + ahead >= begin && this.next !== undefined && !this.problem.value) this.loadNext(this.next);
  }

  // isLive reports whether the list takes up new executions.
  get isLive(): boolean {
    return this.filter.matches !== undefined;
  }

  // stop cancels what is being loaded.
  stop(): void {
    this.request.abort();
    this.request = new AbortController();
    this.loading = false;
  }

  // reload loads the first page. The rows that are there stay until then.
  reload(): void {
    this.request.abort();
    this.request = new AbortController();
    this.problem.value = undefined;
    this.loading = false;
    this.arrived = [];
    const page: ListPage = { after: "", limit: firstSize, count: 0, rows: undefined, used: ++this.clock };
    void this.load(page, (rows, next) => {
      this.pages = [page];
      this.newer = [];
      this.held = [];
      this.waiting.value = 0;
      this.isStale.value = false;
      page.rows = rows;
      page.count = rows.length;
      this.next = next;
      const arrived = this.arrived ?? [];
      this.arrived = undefined;
      for (const e of arrived) this.take(e);
    });
  }

  retry(): void {
    this.problem.value = undefined;
    this.again();
    this.draw();
  }

  // showWaiting puts the new rows on top.
  showWaiting(): void {
    if (this.isStale.value) {
      this.reload();
      return;
    }
    for (const e of this.held) this.insert(e);
    this.held = [];
    this.waiting.value = 0;
    this.draw();
  }

  private loadNext(after: string): void {
    // Who goes far gets there with few requests: each page is twice as large as the one before.
    const limit = Math.min(maxSize, firstSize * 2 ** this.pages.length);
    const page: ListPage = { after, limit, count: 0, rows: undefined, used: ++this.clock };
    void this.load(page, (rows, next) => {
      page.rows = rows.filter((e) => !this.newer.some((known) => known.execution_id === e.execution_id));
      page.count = page.rows.length;
      this.pages.push(page);
      this.next = next;
    });
  }

  // loadAgain loads a page that was forgotten. Its place and size stay, so that nothing moves, unless rows were erased: then it
  // has the first ones of the page behind it, which begins later.
  private loadAgain(page: ListPage): void {
    void this.load(page, (rows, next) => {
      const known = new Set([...this.newer, ...this.held].map((e) => e.execution_id));
      page.rows = rows.filter((e) => !known.has(e.execution_id));
      page.count = page.rows.length;
      const index = this.pages.indexOf(page);
      const behind = this.pages[index + 1];
      if (!behind || next === undefined) {
        this.pages.length = index + 1;
        this.next = next;
      } else if (behind.after !== next) {
        behind.after = next;
        behind.rows = undefined;
      }
    });
  }

  // load gives the rows of a page to take, unless another page is being loaded.
  private async load(page: ListPage, take: (rows: Summary[], next: string | undefined) => void): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    const { signal } = this.request;
    try {
      const {
        executions,
        next,
        left_out: leftOut = 0,
      } = await get<{ executions: Summary[]; next?: string; left_out?: number }>(
        "/executions",
        { ...this.filter.query, limit: page.limit, after: page.after },
        signal,
      );
      if (signal.aborted) return;
      if (!page.after) this.leftOut.value = leftOut;
      take(executions, next);
      this.forget();
    } catch (thrown) {
      if (isAborted(thrown)) return;
      this.problem.value = Problem.from(thrown);
      this.again = () => void this.load(page, take);
    }
    this.loading = false;
    this.hasBegun.value = true;
    this.version.value++; // at once: the person waits for these rows
    if (!this.problem.value) this.loadWanted();
  }

  private forget(): void {
    let rows = 0;
    for (const page of this.pages.filter((each) => each.rows).sort((a, b) => b.used - a.used)) {
      rows += page.count;
      if (rows > maxRows) page.rows = undefined;
    }
  }

  // receive takes up an event of the feed of executions.
  receive(event: ServerEvent): void {
    if (!this.isLive) return;
    if (event.name === "gap") {
      this.isStale.value = true;
      if (this.scrollTop === 0) this.reload();
      return;
    }
    if (event.name !== "began" && event.name !== "ended") return;
    const e = JSON.parse(event.data) as Summary;
    if (event.name === "began" && this.filter.leavesOut(e)) this.leftOut.value++;
    this.arrived?.push(e);
    this.take(e);
  }

  // take takes up the state of an execution.
  private take(e: Summary): void {
    if (this.replace(e)) {
      this.draw();
      return;
    }
    if (!this.filter.matches?.(e)) return;
    if (this.scrollTop === 0 && this.held.length === 0) this.insert(e);
    else if (this.held.length < maxWaiting) this.held.push(e);
    else this.isStale.value = true;
    this.waiting.value = this.held.length;
    if (this.newer.length > maxWaiting && this.scrollTop === 0) this.reload();
    this.draw();
  }

  // replace takes up the new state of a row that is known.
  private replace(e: Summary): boolean {
    for (const rows of [this.newer, this.held, ...this.pages.map((page) => page.rows)]) {
      const index = rows?.findIndex((known) => known.execution_id === e.execution_id) ?? -1;
      if (index >= 0) {
        rows![index] = e;
        return true;
      }
    }
    return false;
  }

  // insert puts a row where it belongs by its beginning: an execution that matches only since its end began earlier.
  private insert(e: Summary): void {
    const first = this.pages[0]?.rows?.[0];
    const rows = first && e.created_at < first.created_at ? this.pages[0]!.rows! : this.newer;
    let index = rows.findIndex((other) => other.created_at <= e.created_at);
    if (index < 0) index = rows.length;
    rows.splice(index, 0, e);
    if (rows !== this.newer) this.pages[0]!.count++;
    if (this.active >= index) this.active++;
  }

  // draw lets the page be drawn at most once for each frame, however many events there are.
  private draw(): void {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      this.version.value++;
    });
  }
}
