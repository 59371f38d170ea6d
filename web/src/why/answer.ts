import type { Fact, Finding, Why } from "../api/records";

const evidentScore = 70; // from which on numbers of the run show that a finding had an effect
const findingScore = 50; // from which on a fact is a finding
const leastScore = 25; // of the facts that are shown
const maxFindings = 4; // that are shown at once: who reads many follows none
const maxFacts = 8;

// Kinds that say how something is done, and never that a number is wrong.
const notes = new Set(["order"]);

// Shown is a finding as a page shows it: with the code that it is about, if it is about an expression.
export interface Shown {
  line: number;
  step: number; // 0: none
  code: string;
  text: string;
}

// Did is what a line did: what its expressions got and gave.
export interface Did {
  line: number;
  parts: { code: string; text: string }[];
}

// Sections is an answer in the order in which it is read.
export interface Sections {
  first: Shown[]; // "Check first"
  intended: Shown[]; // "Check if intended"
  more: Shown[]; // the others, and notes
  facts: Did[]; // what the other lines did
}

// sectionsOf sorts the findings and facts of an answer. Notes are not shown before causes.
export function sectionsOf({ findings, facts }: Pick<Why, "findings" | "facts">): Sections {
  const all = findings ?? [];
  const causes = all.filter(({ kind }) => !notes.has(kind));
  const shown = causes.slice(0, maxFindings);
  const of = (finding: Finding) => shownFinding(finding, facts ?? []);
  const first = shown.filter(({ score }) => score >= evidentScore).map(of);
  return {
    first,
    intended: shown.filter(({ score }) => score < evidentScore).map(of),
    more: [...causes.slice(maxFindings), ...all.filter(({ kind }) => notes.has(kind))].map(of),
    facts: didOf((facts ?? []).filter(({ line }) => !first.some((found) => found.line === line))),
  };
}

// didOf returns what lines did, the last line first.
function didOf(facts: Fact[]): Did[] {
  const told = facts
    .filter(({ score, text }) => score >= leastScore && score < findingScore && !saysNothing(text))
    .slice(0, maxFacts)
    .sort((a, b) => b.line - a.line || a.column - b.column);
  const lines = new Map<number, Did>();
  for (const { line, code, text } of told) {
    const did = lines.get(line) ?? { line, parts: [] };
    lines.set(line, did);
    did.parts.push({ code: oneLine(code), text: oneLine(text) });
  }
  return [...lines.values()];
}

// saysNothing reports whether a fact has only the number and the type of values, or a value that stayed the same. That all
// values are None, or true, says something.
function saysNothing(text: string): boolean {
  const line = oneLine(text);
  const [before, after, ...more] = line.split(/ (?:->|→) /);
  return (
    /^[\d,]+ values?(?:: [\d,]+ (?!(?:None|True|False)$)[\w.]+)?$/.test(line) || (before === after && more.length === 0)
  );
}

const oneLine = (text: string) => text.split(/\s+/).join(" ").trim();

// shownFinding separates the code from the text of a finding, which begins with it.
function shownFinding({ kind, line_number: line = 0, step = 0, text }: Finding, facts: Fact[]): Shown {
  const fact = facts.find((f) => f.kind === kind && f.line === line && text.includes(oneLine(f.text).slice(0, 60)));
  return fact
    ? { line, step, code: oneLine(fact.code), text: oneLine(fact.text) }
    : { line, step, code: "", text: oneLine(text) };
}

// clipped returns the beginning of a text on one line.
export function clipped(text: string, length: number): string {
  const line = oneLine(text);
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

// linesOf returns the lines of an answer's findings, for marks in the code.
export function linesOf({ first, intended }: Sections): number[] {
  return [...new Set([...first, ...intended].map(({ line }) => line))].filter((line) => line > 0);
}

// cellPath returns the path of a cell in a table that a variable holds. Frames are asked by positions, whose labels may
// repeat, and lists of rows by the index and the key.
export function cellPath(name: string, row: number, column: { name: string; index: number }, isFrame: boolean): string {
  return isFrame ? `${name}.iloc[${row}, ${column.index}]` : `${name}[${row}][${JSON.stringify(column.name)}]`;
}

// lastName returns the variable that the last line of a program shows or sets, or "". isShown says that the value of the
// line is the result of the run.
export function lastName(code: string): { name: string; isShown: boolean } {
  const lines = code.split("\n").filter((line) => /^[^\s#)\]}]/.test(line));
  const last = (lines.at(-1) ?? "").replace(/\s+#.*$/, "").trim();
  if (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(last) && !/^(pass|break|continue|return)$/.test(last))
    return { name: last, isShown: true };
  for (const line of lines.reverse()) {
    const set = /^([\p{L}_][\p{L}\p{N}_]*)\s*(?:[-+*/%@&|^]|\/\/|\*\*|<<|>>)?=(?!=)/u.exec(line)?.[1];
    if (set) return { name: set, isShown: false };
    if (!/^(print|display)\s*\(|^(plt|fig|ax)\b/.test(line)) break; // the value of this line is the result, if there is one
  }
  return { name: "", isShown: false };
}
