import { get } from "../api/client";
import type { RecordedObject, RecordedTable } from "../api/records";
import { count } from "../format";
import { type Cell, type Column, kindOf } from "./cell";
import { LocalSource, type Page, type Source, type Stats } from "./source";
import type { View } from "./view";

const pageRows = 500; // of one request

// recordedCell returns the value of a cell of a recording, which is what Python writes for it.
export function recordedCell(text: string): Cell {
  if (text === "None" || text === "NaT" || text === "<NA>") return null;
  if (/^-?(nan|inf)$/.test(text)) return { nan: text };
  if (text === "True" || text === "False") return text === "True";
  const quoted = /^'([^'\\]*)'$|^"([^"\\]*)"$/.exec(text);
  if (quoted) return quoted[1] ?? quoted[2] ?? "";
  return text;
}

function columnOf(name: string, type: string, cells: Cell[]): Column {
  const isNumber = cells.some((cell) => cell !== null) && cells.every((cell) => cell === null || isNumeric(cell));
  return { name, type, kind: isNumber ? kindOf(cells, "number") : kindOf(cells.filter((c) => typeof c === "boolean")) };
}

const isNumeric = (cell: Cell) =>
  typeof cell === "object" || (typeof cell === "string" && /^-?\d+(\.\d*)?(e[-+]?\d+)?$/.test(cell));

// sourceOfTable returns the rows of a recording, behind their labels.
export function sourceOfTable({ columns, rows, total_columns: total }: Omit<RecordedTable, "kept">): LocalSource {
  const cells = rows.map((row) => [recordedCell(row.label), ...row.cells.map(recordedCell)]);
  const described = [{ name: "index", dtype: "", missing: 0 }, ...columns].map(({ name, dtype, missing }, c) =>
    columnOf(
      name,
      missing > 0 ? `${dtype}, ${count(missing)} null` : dtype, // of all rows
      cells.map((row) => row[c] ?? null),
    ),
  );
  return new LocalSource(described, cells, total + 1);
}

// RecordedSource has the rows of a table that a recording keeps, which are few: it loads them all.
export class RecordedSource implements Source {
  private loaded: Promise<LocalSource> | undefined;

  constructor(private readonly path: string) {}

  async rows(view: View, start: number, count: number): Promise<Page> {
    return (await this.all()).rows(view, start, count);
  }

  async cell(view: View, index: number, column: number): Promise<Cell> {
    return (await this.all()).cell(view, index, column);
  }

  async stats(view: View, column: number): Promise<Stats> {
    return (await this.all()).stats(view, column);
  }

  private all(): Promise<LocalSource> {
    this.loaded ??= this.load().catch((thrown: unknown) => {
      this.loaded = undefined;
      throw thrown;
    });
    return this.loaded;
  }

  private async load(): Promise<LocalSource> {
    let table: RecordedTable | undefined;
    for (let start = 0; ; start += pageRows) {
      const { table: part } = await get<RecordedObject>(this.path, { start, count: pageRows });
      if (!part) break;
      if (table) table.rows.push(...part.rows);
      else table = part;
      if (part.rows.length < pageRows || table.rows.length >= table.kept) break;
    }
    return sourceOfTable(table ?? { columns: [], rows: [], total_columns: 0 });
  }
}
