import { type Cell, type Column, shownCell } from "./cell";

// Where the rows and columns of a table are. Rows have one height. The columns have the widths of what is seen first.

export const rowHeight = 28; // pixels
const cellPadding = 24;
const minWidth = 56;
const maxWidth = 380;
const widthRows = 60; // rows that the widths depend on

// Browsers draw no element that is higher. A table with more rows is scrolled faster than it is high.
const maxHeight = 12_000_000;

// columnWidths returns the width of each column.
export function columnWidths(columns: Column[], rows: Cell[][], characterWidth: number): number[] {
  return columns.map((column, c) => {
    let length = Math.max(column.name.length + 2, column.type.length * 0.85);
    for (const row of rows.slice(0, widthRows))
      length = Math.max(length, shownCell(row[c] ?? null, column.kind).text.length);
    return widthOf(length, characterWidth);
  });
}

// widthOf returns the width of a column for texts of this length.
export function widthOf(length: number, characterWidth: number): number {
  return Math.round(Math.min(Math.max(length * characterWidth + cellPadding, minWidth), maxWidth));
}

// offsets returns where each column begins, and behind them where the last one ends.
export function offsets(widths: number[]): number[] {
  const out = [0];
  for (const width of widths) out.push(out.at(-1)! + width);
  return out;
}

// columnsBetween returns the first and the last column in a range of pixels.
export function columnsBetween(starts: number[], left: number, right: number): [number, number] {
  const first = lastAt(starts, left);
  let last = first;
  while (last + 2 < starts.length && starts[last + 1]! < right) last++;
  return [first, last];
}

function lastAt(starts: number[], position: number): number {
  let low = 0;
  let high = Math.max(starts.length - 2, 0);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle]! <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

// VerticalScale translates between the place in a table, in pixels, and that of the browser's scroll bar.
export class VerticalScale {
  readonly height: number; // of what the browser scrolls

  constructor(
    private readonly content: number,
    private readonly viewport: number,
  ) {
    this.height = Math.min(content, maxHeight);
  }

  // top returns the place in the table for a place of the scroll bar.
  top(scrollTop: number): number {
    return Math.min(scrollTop * this.factor, this.most);
  }

  // scrollTop returns the place of the scroll bar.
  scrollTop(top: number): number {
    return Math.max(0, Math.min(top, this.most)) / this.factor;
  }

  get most(): number {
    return Math.max(0, this.content - this.viewport);
  }

  private get factor(): number {
    const scrolled = this.height - this.viewport;
    return this.content > this.height && scrolled > 0 ? this.most / scrolled : 1;
  }
}

// columnsBeside returns the number of columns without those of labels, as pandas counts them.
export function columnsBeside(labels: number, columns: number): number {
  return labels < columns ? columns - labels : columns;
}
