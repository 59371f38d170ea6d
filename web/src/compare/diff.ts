// The differences of two texts by line, and of two tables by cell.

export interface DiffLine {
  kind: "same" | "removed" | "added" | "changed";
  left: string | undefined;
  right: string | undefined;
  leftNumber: number; // 0: there is no such line
  rightNumber: number;
}

const maxPairs = 4_000_000; // of lines that are compared; longer texts differ as a whole

// diffLines pairs the lines of two texts. Neighbouring removed and added lines stand next to each other.
export function diffLines(left: string, right: string): DiffLine[] {
  const a = linesOf(left);
  const b = linesOf(right);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const out: DiffLine[] = [];
  const same = (i: number, j: number) =>
    out.push({ kind: "same", left: a[i], right: b[j], leftNumber: i + 1, rightNumber: j + 1 });
  for (let i = 0; i < start; i++) same(i, i);
  let removed: number[] = [];
  let added: number[] = [];
  const flush = () => {
    for (let n = 0; n < Math.max(removed.length, added.length); n++) {
      const [i, j] = [removed[n], added[n]];
      out.push({
        kind: i === undefined ? "added" : j === undefined ? "removed" : "changed",
        left: i === undefined ? undefined : a[i],
        right: j === undefined ? undefined : b[j],
        leftNumber: (i ?? -1) + 1,
        rightNumber: (j ?? -1) + 1,
      });
    }
    removed = [];
    added = [];
  };
  const pairs = common(a.slice(start, a.length - end), b.slice(start, b.length - end));
  let [i, j] = [start, start];
  for (const [x, y] of [
    ...pairs.map(([x, y]) => [x + start, y + start] as const),
    [a.length - end, b.length - end] as const,
  ]) {
    while (i < x) removed.push(i++);
    while (j < y) added.push(j++);
    flush();
    if (i < a.length - end && j < b.length - end) same(i++, j++);
  }
  for (let n = end; n > 0; n--) same(a.length - n, b.length - n);
  return out;
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

// common returns a longest sequence of equal lines, as pairs of their indexes.
function common(a: string[], b: string[]): [number, number][] {
  const [n, m] = [a.length, b.length];
  if (n === 0 || m === 0 || n * m > maxPairs) return [];
  const width = m + 1;
  const lengths = new Uint16Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--)
    for (let j = m - 1; j >= 0; j--)
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1]! + 1
          : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
  const pairs: [number, number][] = [];
  let [i, j] = [0, 0];
  while (i < n && j < m) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!) i++;
    else j++;
  }
  return pairs;
}

export type Part = DiffLine[] | { hidden: DiffLine[] };

// folded hides equal lines that are far from a difference.
export function folded(lines: DiffLine[], context = 3): Part[] {
  const near = lines.map((_, n) =>
    lines.slice(Math.max(0, n - context), n + context + 1).some((l) => l.kind !== "same"),
  );
  const parts: Part[] = [];
  for (let from = 0; from < lines.length; ) {
    let to = from;
    while (to < lines.length && near[to] === near[from]) to++;
    const part = lines.slice(from, to);
    parts.push(near[from] || part.length <= 2 ? part : { hidden: part });
    from = to;
  }
  return parts;
}

type Row = Record<string, unknown>;

export interface CellDiff {
  row: number; // from 0
  column: string;
  left: unknown;
  right: unknown;
}

export interface TableDiff {
  cells: CellDiff[]; // the first ones
  total: number; // of different cells, in the rows and columns that both have
  compared: number; // cells
  onlyLeft: string[]; // columns
  onlyRight: string[];
  label: string; // a column of texts that are the same in both, which names the rows, or ""
}

const maxCells = 200;

// diffTables compares the cells in the rows and columns that both tables have.
export function diffTables(left: Row[], right: Row[]): TableDiff {
  const names = (rows: Row[]) => [...new Set(rows.slice(0, 100).flatMap((row) => Object.keys(row)))];
  const [a, b] = [names(left), names(right)];
  const both = a.filter((name) => b.includes(name));
  const rows = Math.min(left.length, right.length);
  const out: TableDiff = {
    cells: [],
    total: 0,
    compared: rows * both.length,
    onlyLeft: a.filter((name) => !b.includes(name)),
    onlyRight: b.filter((name) => !a.includes(name)),
    label:
      both.find((name) =>
        left.slice(0, rows).every((row, n) => typeof row[name] === "string" && row[name] === right[n]![name]),
      ) ?? "",
  };
  for (let row = 0; row < rows; row++)
    for (const column of both) {
      const [x, y] = [left[row]![column], right[row]![column]];
      if (x === y || JSON.stringify(x) === JSON.stringify(y)) continue;
      out.total++;
      if (out.cells.length < maxCells) out.cells.push({ row, column, left: x, right: y });
    }
  return out;
}

// change says how much a number has become, such as "+20 %" or "2.5 times as much".
export function change(from: number, to: number): string {
  if (from === to) return "the same";
  if (from <= 0) return "";
  const ratio = to / from;
  if (ratio >= 2) return `${ratio.toFixed(ratio < 10 ? 1 : 0)} times as much`;
  const percent = Math.round((ratio - 1) * 100);
  return percent === 0 ? "about the same" : `${percent > 0 ? "+" : "−"}${Math.abs(percent)} %`;
}
