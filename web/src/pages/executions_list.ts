import { signal } from "@preact/signals";
import { get } from "../api/client";
import { follow, type ServerEvent } from "../api/events";
import { isAborted, Problem } from "../api/problem";
import type { Summary } from "../api/records";
import type { Filter } from "./executions_filter";

const firstSize = 100; // rows of the first page, which is there soonest
const maxSize = 1000; // rows of a page, which the API allows
const maxRows = 8000; // in memory; others are loaded again by the cursor of their page
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
  readonly waiting = signal(0); // new rows that are not shown yet
  readonly isStale = signal(false); // events are missing: only loading again shows all
  readonly live = signal<"connecting" | "live" | "off">("connecting");
  scrollTop = 0; // where the person was, for coming back
  active = -1;

  private pages: ListPage[] = [];
  private next: string | undefined = "";
  private newer: Summary[] = []; // began after the first page was loaded
  private held: Summary[] = [];
  private loading = false;
  private clock = 0;
  private stopEvents: (() => void) | undefined;
  private request = new AbortController();
  private drawing = false;

  constructor(readonly key: string, private readonly filter: Filter) {}

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

  // want loads what is missing of the rows from first to last, and the next page if they reach the end.
  want(first: number, last: number): void {
    let begin = this.newer.length;
    for (const page of this.pages) {
      const end = begin + page.count;
      if (!page.rows && first < end && last >= begin) void this.load(page);
      begin = end;
    }
    if (last >= begin - 1 && this.next !== undefined && !this.problem.value) void this.loadNext();
  }

  // start follows the events of all executions until stop is called.
  start(): void {
    if (!this.filter.matches) {
      this.live.value = "off";
      return;
    }
    const user = this.filter.query["user_id"];
    this.stopEvents = follow("/executions/events", user ? { user_id: user } : {}, {
      onOpen: () => (this.live.value = "live"),
      onLost: () => (this.live.value = "connecting"),
      onEvent: (event) => this.take(event),
    });
  }

  stop(): void {
    this.stopEvents?.();
    this.stopEvents = undefined;
    this.request.abort();
    this.request = new AbortController();
    this.loading = false;
  }

  // reload forgets everything and loads the first page.
  reload(): void {
    this.request.abort();
    this.request = new AbortController();
    this.loading = false;
    this.pages = [];
    this.newer = [];
    this.held = [];
    this.next = "";
    this.waiting.value = 0;
    this.isStale.value = false;
    this.retry();
  }

  retry(): void {
    this.problem.value = undefined;
    void this.loadNext();
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

  private async loadNext(): Promise<void> {
    if (this.loading || this.next === undefined) return;
    // Who goes far gets there with few requests: each page is twice as large as the one before.
    const limit = Math.min(maxSize, firstSize * 2 ** this.pages.length);
    const page: ListPage = { after: this.next, limit, count: 0, rows: undefined, used: ++this.clock };
    this.loading = true;
    const request = this.request;
    try {
      const { executions, next } = await this.fetch(page);
      if (request.signal.aborted) return;
      page.rows = executions.filter((e) => !this.newer.some((known) => known.execution_id === e.execution_id));
      page.count = page.rows.length;
      this.pages.push(page);
      this.next = next;
      this.forget();
    } catch (thrown) {
      if (isAborted(thrown)) return;
      this.problem.value = Problem.from(thrown);
    }
    this.loading = false;
    this.draw();
  }

  // load loads a page again. Its place and size stay, so that nothing moves.
  private async load(page: ListPage): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    const request = this.request;
    try {
      const { executions } = await this.fetch(page);
      if (request.signal.aborted) return;
      page.rows = executions.slice(0, page.count);
      page.count = page.rows.length;
      this.forget();
    } catch (thrown) {
      if (isAborted(thrown)) return;
      this.problem.value = Problem.from(thrown);
    }
    this.loading = false;
    this.draw();
  }

  private fetch({ after, limit }: ListPage): Promise<{ executions: Summary[]; next?: string }> {
    return get("/executions", { ...this.filter.query, limit, after }, this.request.signal);
  }

  private forget(): void {
    let rows = 0;
    for (const page of this.pages.filter((each) => each.rows).sort((a, b) => b.used - a.used)) {
      rows += page.count;
      if (rows > maxRows) page.rows = undefined;
    }
  }

  private take(event: ServerEvent): void {
    if (event.name === "gap") {
      this.isStale.value = true;
      if (this.scrollTop === 0) this.reload();
      return;
    }
    if (event.name !== "began" && event.name !== "ended") return;
    const e = JSON.parse(event.data) as Summary;
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
