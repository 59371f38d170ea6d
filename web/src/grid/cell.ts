// The values of a table. A cell is JSON, or an object that says what JSON has not.

export interface Special {
  nan?: string; // NaN, or an infinite number
  json?: unknown; // a JSON value that is not a text, number or boolean
  text?: string; // a preview of another value
  cut?: string; // the beginning of a text with length characters, or of a JSON text if there is a key json
  length?: number;
}

export type Cell = null | boolean | number | string | Special;

export type Kind = "number" | "time" | "bool" | "json" | "text";

export interface Column {
  name: string;
  type: string;
  kind: Kind;
}

export const isSpecial = (cell: Cell): cell is Special => typeof cell === "object" && cell !== null;

// cellOf returns the cell of a JSON value of a result. Numbers that JSON has not, and values without JSON, are objects
// with a type and a repr there.
export function cellOf(value: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof value !== "object") return value as Cell;
  const { type, repr } = value as { type?: unknown; repr?: unknown };
  if (typeof type === "string" && typeof repr === "string" && Object.keys(value).length === 2)
    return /^(float|float64|Decimal)$/.test(type) ? { nan: repr } : { text: repr };
  return { json: value };
}

// kindOf returns the kind of a column with these values. Decimals that a float has not are texts among numbers.
export function kindOf(cells: Cell[], type = ""): Kind {
  let kind: Kind | undefined;
  let hasText = false;
  for (const cell of cells) {
    if (cell === null) continue;
    const each = isSpecial(cell) ? ("nan" in cell ? "number" : "json" in cell ? "json" : "text") : kinds[typeof cell];
    if (each === "text" && typeof cell === "string" && isNumeric(cell)) {
      hasText = true;
      continue;
    }
    if (kind !== undefined && kind !== each) return kind === "json" || each === "json" ? "json" : "text";
    kind = each;
  }
  const isNumber = /^(int|uint|float|Int|UInt|Float|decimal|numeric|number|Decimal)/.test(type);
  if (hasText) return kind === "number" || (kind === undefined && isNumber) ? "number" : "text";
  if (kind === "text" && /^datetime/.test(type)) return "time";
  return kind ?? (isNumber ? "number" : "text");
}

const kinds: Record<string, Kind | undefined> = { boolean: "bool", number: "number", string: "text" };
const numeric = /^[-+]?(\d+)(\.\d*)?(e[-+]?\d+)?$/i;

const isNumeric = (text: string) => text.length < 1000 && numeric.test(text);

// grouped returns a number with separators between the thousands.
export function grouped(text: string): string {
  const parts = /^([-+]?)(\d+)(.*)$/.exec(text);
  if (!parts) return text;
  return parts[1]! + parts[2]!.replace(/\B(?=(\d{3})+$)/g, ",") + parts[3]!;
}

// numberOf returns the number of a cell, or undefined.
export function numberOf(cell: Cell, kind: Kind): number | undefined {
  if (typeof cell === "number") return cell;
  if (isSpecial(cell)) {
    if (cell.nan === undefined) return undefined;
    return /inf/i.test(cell.nan) ? (cell.nan.includes("-") ? -Infinity : Infinity) : NaN;
  }
  if (typeof cell === "string" && kind === "number" && isNumeric(cell)) return Number(cell);
  return undefined;
}

// plain returns the text of a cell as one copies it: the digits of a number without separators.
export function plain(cell: Cell): string {
  if (cell === null) return "";
  if (!isSpecial(cell)) return String(cell);
  if (cell.nan !== undefined) return cell.nan;
  if (cell.cut !== undefined) return cell.cut + "…";
  if (cell.text !== undefined) return cell.text;
  return JSON.stringify(cell.json);
}

export interface Shown {
  text: string;
  look: "" | "none" | "number" | "json"; // none: NULL, NaN and the empty text are words, and no values
  isCut: boolean;
}

const maxShown = 300;

// shownCell returns how a table shows a cell, in one line.
export function shownCell(cell: Cell, kind: Kind): Shown {
  if (cell === null) return { text: "NULL", look: "none", isCut: false };
  if (cell === "") return { text: "empty", look: "none", isCut: false };
  if (isSpecial(cell)) {
    if (cell.nan !== undefined)
      return {
        text: /nan/i.test(cell.nan) ? "NaN" : cell.nan.replace(/inf(inity)?/i, "∞"),
        look: "none",
        isCut: false,
      };
    const text = oneLine(cell.cut ?? cell.text ?? JSON.stringify(cell.json));
    return { text, look: "json" in cell ? "json" : "", isCut: cell.cut !== undefined || text.length >= maxShown };
  }
  if (typeof cell === "number" || (kind === "number" && typeof cell === "string" && isNumeric(cell)))
    return { text: grouped(String(cell)), look: "number", isCut: false };
  const text = String(cell);
  return { text: oneLine(text), look: "", isCut: text.length > maxShown };
}

const oneLine = (text: string) => text.slice(0, maxShown).replace(/\r?\n/g, "↵");

// csvCell returns a cell of a CSV file. NULL is nothing, and an empty text is quoted, as PostgreSQL writes them.
export function csvCell(cell: Cell): string {
  if (cell === null) return "";
  const text = plain(cell);
  return text === "" || /[",\r\n]/.test(text) || /^\s|\s$/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export const csvLine = (cells: Cell[]) => cells.map(csvCell).join(",") + "\r\n";

// tabbed returns cells as spreadsheets take them from the clipboard.
export function tabbed(rows: Cell[][]): string {
  const one = (cell: Cell) => {
    const text = plain(cell);
    return /["\t\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return rows.map((row) => row.map(one).join("\t")).join("\n");
}
