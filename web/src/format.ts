// Times have a zone and numbers a unit, always.

const integers = new Intl.NumberFormat("en");

export function count(n: number): string {
  return integers.format(n);
}

// plural returns "1 row" or "5 rows".
export function plural(n: number, one: string, many = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

function digits(n: number, unit: string): string {
  return `${n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2)} ${unit}`;
}

// duration takes milliseconds.
export function duration(ms: number): string {
  if (ms <= 0) return "0 ms";
  // What would be rounded up to a whole larger unit is in that unit.
  if (ms < 999.5) return digits(ms, "ms");
  if (ms < 59_950) return digits(ms / 1000, "s");
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// days takes seconds.
export function days(seconds: number): string {
  return seconds < 86_400 ? duration(seconds * 1000) : plural(Math.round(seconds / 8640) / 10, "day");
}

export function megabytes(mb: number): string {
  return mb >= 1024 ? digits(mb / 1024, "GB") : digits(mb, "MB");
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 ** 2) return digits(n / 1024, "KB");
  if (n < 1024 ** 3) return digits(n / 1024 ** 2, "MB");
  return digits(n / 1024 ** 3, "GB");
}

const pad = (n: number, width = 2) => String(n).padStart(width, "0");

// zone returns the zone of the browser at a time, such as "UTC" or "UTC+02:00".
export function zone(at = new Date()): string {
  const minutes = -at.getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}

export function clock(at: Date): string {
  return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
}

export function day(at: Date): string {
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
}

// dateTime returns a time of the API in the browser's zone, without the zone: for columns whose heading has it.
export function dateTime(text: string): string {
  const at = new Date(text);
  return `${day(at)} ${clock(at).slice(0, 8)}`;
}

// fullTime returns a time of the API with milliseconds and zone.
export function fullTime(text: string): string {
  const at = new Date(text);
  return `${day(at)} ${clock(at)} ${zone(at)}`;
}

// ago returns how long before now a time of the API was, such as "5 min ago", in the largest unit that fits.
export function ago(text: string, now = Date.now()): string {
  const seconds = (now - new Date(text).getTime()) / 1000;
  if (seconds < -60) return dateTime(text);
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  const days = Math.floor(seconds / 86_400);
  if (days < 14) return days === 1 ? "yesterday" : `${days} days ago`;
  return day(new Date(text));
}

// milliseconds returns a time of the API with its fraction, which Date cuts off.
export function milliseconds(text: string): number {
  const micros = /\.\d{3}(\d{1,6})/.exec(text)?.[1] ?? "0";
  return new Date(text).getTime() + Number(`0.${micros}`);
}

// firstLine returns the first line of a program that says something: its first comment, or the first line that is no
// import.
export function firstLine(code: string): string {
  const lines = code.split("\n").map((line) => line.trim());
  return lines.find((line) => /\w/.test(line) && !/^(import |from .* import |#!|# *%%)/.test(line)) ?? code.trim();
}

// saysLittle are lines that do not tell one run from another: imports, texts that begin, constants and empty containers.
const saysLittle =
  /^(import |from \S+ import |[\w.]+ *= *(await )?([\w.]+\()?[rf]?("""|\x27\x27\x27|["'][^"']*["']$|-?[\d._]+$|\{\}$|\[\]$|$))/;

// titleOf returns what lists call a run: its title, or else its first comment or line without the signs of a comment. If
// that line says little, it is the tables that the code names, or the first line that says more.
export function titleOf({ title, code = "" }: { title?: string; code?: string }): string {
  const first = firstLine(code);
  if (title || !saysLittle.test(first)) return title || first.replace(/^(#|--)+\s*(?=\S)/, "");
  const tables = [...code.matchAll(/\b(?:FROM|JOIN)\s+([a-z_][\w.]*)/gi)]
    .map(([, name]) => name!)
    .filter((name) => !new RegExp(`^\\s*from ${name.replaceAll(".", "\\.")} import`, "m").test(code));
  if (tables.length > 0) return `Reads ${[...new Set(tables)].join(", ")}`;
  const lines = code.split("\n").map((line) => line.trim());
  return lines.find((line) => line && !saysLittle.test(line)) ?? first;
}

// statementText returns a statement without the empty lines around it and the indentation of all its lines, which texts in
// triple quotes have.
export function statementText(query: string): string {
  const text = query.replace(/^\s*\n/, "").trimEnd();
  const indents = text
    .split("\n")
    .filter((line) => line.trim())
    .map((line) => line.search(/\S/));
  const common = Math.min(...indents);
  return common > 0 && Number.isFinite(common) ? text.replace(new RegExp(`^[ \\t]{${common}}`, "gm"), "") : text;
}

// changedRows returns the number of rows of a statement. A captured one has changed none; its number is an estimate.
export function changedRows({ status, rows }: { status: string; rows: number }): string {
  return status === "captured" ? "–" : count(rows);
}

// hasHint reports whether a message contains a hint, so that it need not be shown again.
export function hasHint(message: string, hint: string): boolean {
  return message.toLowerCase().includes(hint.toLowerCase().replace(/[.?!\s]+$/, ""));
}

// shortID returns the beginning of an identifier, which is enough to tell it from others on a page.
export function shortID(id: string): string {
  return id.length > 12 ? id.slice(0, 8) : id;
}

// asText returns a JSON value as people read it.
export function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

// own returns the entry of a record with a name that somebody else chose. Without it, "constructor" and "__proto__" would
// find what every object inherits.
export function own<T>(record: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined;
}
