import { signal } from "@preact/signals";
import { isAborted, Problem } from "../api/problem";
import { count, plural } from "../format";
import { shownCell } from "./cell";
import { columnsBetween, columnWidths, offsets, rowHeight, VerticalScale, widthOf } from "./layout";
import { GridModel } from "./model";
import { FirstRowsSource, type Source, type Stats } from "./source";
import { type everything, filterOf } from "./view";

export const headingHeight = 44; // pixels, of the names and types of the columns
export const filterHeight = 34;
const maxSeenRows = 15; // without scrolling

export interface Place {
  row: number; // in the view; -1 is the heading
  column: number;
}

// GridState is what a person sees of a table, and does with it.
export class GridState {
  readonly model: GridModel;
  readonly top = signal(0); // pixels of the table above those that are seen
  readonly left = signal(0);
  readonly size = signal({ width: 800, height: 0 });
  readonly active = signal<Place>({ row: 0, column: 0 });
  readonly anchor = signal<Place | undefined>(undefined); // the other corner of the selection
  readonly isOpened = signal(false); // the active cell is shown whole
  readonly isFiltering = signal(false);
  readonly texts = signal<Record<number, string>>({}); // of the filters, by column
  readonly message = signal("");
  readonly shownStats = signal<{ column: number; stats?: Stats; problem?: Problem } | undefined>(undefined);
  labels = 0; // columns of labels, which come first
  scroller: HTMLElement | null = null;
  characterWidth = 7.5; // pixels
  scrollBar = 0; // pixels that it takes from the height
  private widths: number[] = [];
  private starts: number[] = [0];
  private timer = 0;

  constructor(readonly source: Source) {
    this.model = new GridModel(source);
    this.model.onRows = () => this.fit();
    this.model.show(0, maxSeenRows);
  }

  end(): void {
    window.clearTimeout(this.timer);
    this.model.end();
  }

  // -- where everything is

  get columnStarts(): number[] {
    const { columns } = this.model;
    if (this.widths.length !== columns.length && this.model.isLoaded) {
      const rows = Array.from({ length: 60 }, (_, n) => this.model.row(n)).filter((row) => row !== undefined);
      this.widths = columnWidths(columns, rows, this.characterWidth);
      this.starts = offsets(this.widths);
    }
    return this.starts;
  }

  // fit makes the columns wider that numbers among those that are seen do not fit into: the beginning of a number would be
  // another number.
  private fit(): void {
    const { columns } = this.model;
    if (!this.model.isLoaded || this.columnStarts.length <= 1) return;
    const [first, last] = this.seenRows;
    const before = this.starts;
    for (let [c, end] = this.seenColumns; c <= end && c < columns.length; c++) {
      if (columns[c]!.kind !== "number") continue;
      let length = 0;
      for (let index = first; index <= last; index++) {
        const cell = this.model.row(index)?.[c];
        if (cell !== undefined) length = Math.max(length, shownCell(cell, "number").text.length);
      }
      const width = widthOf(length, this.characterWidth);
      if (width <= this.widths[c]!) continue;
      this.widths[c] = width;
      this.starts = offsets(this.widths);
    }
    if (this.starts !== before) this.model.version.value++;
  }

  get numbersWidth(): number {
    return Math.max(34, count(this.model.matching).length * this.characterWidth * 0.87 + 18);
  }

  get headHeight(): number {
    return headingHeight + (this.isFiltering.value ? filterHeight : 0);
  }

  get boxHeight(): number {
    const rows = Math.max(2, Math.min(this.model.total, maxSeenRows));
    return this.headHeight + rows * rowHeight + (this.tableWidth > this.size.value.width ? this.scrollBar : 0);
  }

  get tableWidth(): number {
    return this.numbersWidth + (this.columnStarts.at(-1) ?? 0);
  }

  get viewportHeight(): number {
    return Math.max(0, this.size.value.height - this.headHeight);
  }

  get scale(): VerticalScale {
    return new VerticalScale(this.model.matching * rowHeight, this.viewportHeight);
  }

  // seenRows returns the first and the last row that are seen, or -1 as the last for none.
  get seenRows(): [number, number] {
    const first = Math.floor(this.top.value / rowHeight);
    const last = Math.ceil((this.top.value + this.viewportHeight) / rowHeight);
    return [first, Math.min(last, this.model.matching - 1)];
  }

  get seenColumns(): [number, number] {
    return columnsBetween(this.columnStarts, this.left.value, this.left.value + this.size.value.width);
  }

  // scrolled follows the scroll bars.
  scrolled(): void {
    const box = this.scroller;
    if (!box) return;
    this.left.value = box.scrollLeft;
    const { scale } = this;
    if (Math.abs(scale.scrollTop(this.top.peek()) - box.scrollTop) >= 1) this.top.value = scale.top(box.scrollTop);
    this.showSeen();
  }

  showSeen(): void {
    const [first, last] = this.seenRows;
    this.model.show(first, Math.max(first, last));
    this.fit();
  }

  private scrollTo(top: number): void {
    this.top.value = Math.max(0, Math.min(top, this.scale.most));
    if (this.scroller) this.scroller.scrollTop = this.scale.scrollTop(this.top.value);
    this.showSeen();
  }

  // -- the active cell

  // go makes a cell active, and shows it. With extend, the selection reaches to it.
  go(place: Place, extend = false): void {
    const { matching, columns } = this.model;
    const row = Math.max(-1, Math.min(place.row, matching - 1));
    const column = Math.max(0, Math.min(place.column, columns.length - 1));
    this.anchor.value = extend ? (this.anchor.value ?? this.active.value) : undefined;
    this.active.value = { row, column };
    this.message.value = "";
    if (row >= 0) {
      const at = row * rowHeight;
      const most = at + rowHeight - this.viewportHeight;
      if (at < this.top.value) this.scrollTo(at);
      else if (most > this.top.value) this.scrollTo(most);
    }
    const start = this.columnStarts[column] ?? 0;
    const end = this.columnStarts[column + 1] ?? start;
    const box = this.scroller;
    if (!box) return;
    const width = this.size.value.width - this.numbersWidth;
    if (start < box.scrollLeft || end - start > width) box.scrollLeft = start;
    else if (end > box.scrollLeft + width) box.scrollLeft = end - width;
  }

  // goToRow shows the row with a number from 1, or says why it cannot.
  goToRow(number: number): void {
    const { matching, total } = this.model;
    if (!Number.isInteger(number) || number < 1 || number > matching) {
      const rows = plural(matching, "row");
      this.message.value =
        matching < total
          ? `There is no row ${count(number)} here: ${rows} of ${count(total)} match the filters.`
          : this.isPartial
            ? `Row ${count(number)} is not kept: ${this.keptRows}.`
            : `There is no row ${count(number)}: the table has ${rows}.`;
      return;
    }
    this.go({ row: number - 1, column: this.active.value.column });
    this.scrollTo((number - 1) * rowHeight);
  }

  // -- what is kept of a table of which the page has the first rows

  whole: { rows: number; columns: number } | undefined; // of the table, if the source may have fewer

  get isPartial(): boolean {
    return this.whole !== undefined && this.model.isLoaded && this.model.total < this.whole.rows;
  }

  get keptRows(): string {
    const rows = this.model.total;
    return rows === 0
      ? "no rows are kept"
      : `the first ${plural(rows, "row")} of ${count(this.whole?.rows ?? rows)} are kept`;
  }

  get reason(): Problem | undefined {
    return this.source instanceof FirstRowsSource ? this.source.reason : undefined;
  }

  retry(): void {
    if (this.source instanceof FirstRowsSource) this.source.retry();
    this.widths = [];
    this.model.reset();
  }

  // -- order and conditions

  // sortBy sorts by a column: upwards, then downwards, then not.
  sortBy(column: number): void {
    const { sort, filters } = this.model.view;
    const next =
      sort?.column !== column
        ? { column, descending: false }
        : sort.descending
          ? undefined
          : { column, descending: true };
    this.changeView({ sort: next, filters });
  }

  // filterBy takes the text of a column's filter a moment after the last key.
  filterBy(column: number, text: string): void {
    this.texts.value = { ...this.texts.value, [column]: text };
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.applyFilters(), 250);
  }

  clearFilters(): void {
    this.texts.value = {};
    this.applyFilters();
  }

  private applyFilters(): void {
    const filters = Object.entries(this.texts.value)
      .map(([column, text]) => filterOf(Number(column), text))
      .filter((filter) => filter !== undefined);
    this.changeView({ ...this.model.view, filters });
  }

  private changeView(view: typeof everything): void {
    this.shownStats.value = undefined;
    this.isOpened.value = false;
    this.anchor.value = undefined;
    this.active.value = { row: this.active.value.row < 0 ? -1 : 0, column: this.active.value.column };
    this.message.value = "";
    this.top.value = 0;
    if (this.scroller) this.scroller.scrollTop = 0;
    this.model.setView(view);
  }

  // -- statistics

  private statsRequest: AbortController | undefined;

  // showStats shows what is known of a column after a moment; undefined hides it.
  showStats(column: number | undefined, delay = 300): void {
    window.clearTimeout(this.timer);
    this.statsRequest?.abort();
    if (column === undefined) {
      this.shownStats.value = undefined;
      return;
    }
    this.timer = window.setTimeout(() => void this.loadStats(column), delay);
  }

  private async loadStats(column: number): Promise<void> {
    const request = new AbortController();
    this.statsRequest = request;
    this.shownStats.value = { column };
    try {
      const stats = await this.source.stats(this.model.view, column, request.signal);
      if (this.statsRequest === request) this.shownStats.value = { column, stats };
    } catch (thrown) {
      if (this.statsRequest === request && !isAborted(thrown))
        this.shownStats.value = { column, problem: Problem.from(thrown) };
    }
  }

  // selected returns the rows and columns of the selection.
  get selected(): { rows: [number, number]; columns: [number, number] } {
    const one = this.active.value;
    const other = this.anchor.value ?? one;
    return {
      rows: [Math.max(0, Math.min(one.row, other.row)), Math.max(0, one.row, other.row)],
      columns: [Math.min(one.column, other.column), Math.max(one.column, other.column)],
    };
  }
}
