import { type Cell, isSpecial, type Kind, numberOf, plain } from "./cell";

// A view is the order of the rows of a table, and the conditions that they fulfil.

export interface View {
  sort: { column: number; descending: boolean } | undefined;
  filters: Filter[];
}

export interface Filter {
  column: number;
  op: "contains" | "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "null" | "notnull";
  value: string;
}

export const everything: View = { sort: undefined, filters: [] };

const operators: [string, Filter["op"]][] = [
  [">=", "ge"],
  ["<=", "le"],
  ["!=", "ne"],
  ["<>", "ne"],
  ["=", "eq"],
  [">", "gt"],
  ["<", "lt"],
];

// filterOf returns the condition that a person wrote for a column: a text that the values contain, a comparison such as
// >= 10, null, or !null. It returns undefined for no text.
export function filterOf(column: number, text: string): Filter | undefined {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  if (/^null$/i.test(trimmed)) return { column, op: "null", value: "" };
  if (/^(!|not )\s*null$/i.test(trimmed)) return { column, op: "notnull", value: "" };
  for (const [sign, op] of operators) {
    if (!trimmed.startsWith(sign)) continue;
    const value = trimmed.slice(sign.length).trim();
    return { column, op, value: value === '""' ? "" : value };
  }
  return { column, op: "contains", value: trimmed };
}

// queryOf returns the parameters of the API for a view.
export function queryOf({ sort, filters }: View): { sort: string | undefined; filter: string[] } {
  return {
    sort: sort && `${sort.descending ? "-" : ""}${sort.column}`,
    filter: filters.map(({ column, op, value }) => `${column}:${op}:${value}`),
  };
}

// The ranks of values: numbers, then texts, then NaN, then NULL, which are last in both orders.
function rank(cell: Cell, kind: Kind): number {
  if (cell === null) return 4;
  const number = numberOf(cell, kind);
  if (number === undefined) return 1;
  return Number.isNaN(number) ? 3 : 0;
}

// compare orders two cells of a column.
export function compare(one: Cell, other: Cell, kind: Kind, descending: boolean): number {
  const ranks = [rank(one, kind), rank(other, kind)] as const;
  const sign = descending ? -1 : 1;
  if (ranks[0] !== ranks[1]) return (ranks[0] - ranks[1]) * (ranks[0] < 3 && ranks[1] < 3 ? sign : 1);
  if (ranks[0] >= 3) return 0;
  if (ranks[0] === 0) {
    const difference = numberOf(one, kind)! - numberOf(other, kind)!;
    return Number.isNaN(difference) ? 0 : difference * sign;
  }
  const texts = [plain(one), plain(other)] as const;
  return texts[0] === texts[1] ? 0 : (texts[0] < texts[1] ? -1 : 1) * sign;
}

// passes reports whether a cell fulfils a condition.
export function passes(cell: Cell, { op, value }: Filter, kind: Kind): boolean {
  if (op === "null" || op === "notnull") return (cell === null) === (op === "null");
  if (cell === null) return false;
  if (op === "contains") return plain(cell).toLowerCase().includes(value.toLowerCase());
  const wanted = numberOf(value.replace(/[,_]/g, ""), kind);
  const number = numberOf(cell, kind);
  const areNumbers = wanted !== undefined && number !== undefined;
  const text = isSpecial(cell) && cell.nan !== undefined ? undefined : plain(cell);
  if (op === "eq" || op === "ne") return (areNumbers ? number === wanted : plain(cell) === value) === (op === "eq");
  if (!areNumbers && (number !== undefined || text === undefined)) return false;
  const difference = areNumbers ? number - wanted : text! < value ? -1 : text! > value ? 1 : 0;
  return { lt: difference < 0, le: difference <= 0, gt: difference > 0, ge: difference >= 0 }[op];
}
