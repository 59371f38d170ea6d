import type { Finding, Stage, Stages } from "./answer";

// The lines of a statement with the stages that end in them.

export interface Step {
  stage: Stage;
  right: Stage | undefined; // of a join: the table that it joins
  view: string | undefined; // whose query it is a stage of
}

// isPart reports whether a stage is a part of another one, which it does not change.
export const isPart = ({ part_of: of = -1, kind }: Stage) => of >= 0 || kind === "subquery";

export interface Line {
  number: number;
  text: string;
  steps: Step[];
  findings: Finding[];
}

// linesOf returns the lines of a statement without the empty ones around it and the indentation of all of them. Their
// numbers are those of the text that was sent.
export function linesOf(sql: string, answer: Stages | undefined): Line[] {
  const texts = sql.split("\n");
  const filled = texts.flatMap((text, n) => (text.trim() ? [n] : []));
  const first = filled[0] ?? 0;
  const last = filled.at(-1) ?? 0;
  const common = Math.min(...filled.map((n) => texts[n]!.search(/\S/)), Number.MAX_SAFE_INTEGER);
  const lines = texts
    .slice(first, last + 1)
    .map((text, n): Line => ({ number: first + n + 1, text: text.slice(common).trimEnd(), steps: [], findings: [] }));
  if (!answer) return lines;
  const byNumber = new Map(lines.map((line) => [line.number, line]));
  for (const step of stepsOf(answer)) (byNumber.get(lineOf(step.stage, answer)) ?? lines.at(-1))?.steps.push(step);
  for (const finding of answer.findings) {
    const of = lines.find(({ steps }) => steps.some((step) => isAbout(finding, step)));
    (of ?? byNumber.get(finding.line))?.findings.push(finding);
  }
  return lines;
}

// isAbout reports whether a finding is about a step.
export const isAbout = ({ stage: id }: Finding, { stage, right }: Step) => id === stage.id || id === right?.id;

// stepsOf returns the stages in the order of their blocks. The table of a join belongs to the step of the join.
function stepsOf(answer: Stages): Step[] {
  return answer.blocks.flatMap(({ stages, kind: block, name: view }) => {
    const rights = new Map<Stage, Stage>();
    for (const join of stages.filter(({ kind }) => kind === "join")) {
      const right = stages.find(
        ({ kind, name, from_line: line }) =>
          kind === "from" && name === join.name && line >= join.from_line && line <= join.to_line,
      );
      if (right) rights.set(join, right);
    }
    const joined = new Set(rights.values());
    return stages
      .filter((stage) => !joined.has(stage))
      .map((stage) => ({ stage, right: rights.get(stage), view: block === "view" ? view : undefined }));
  });
}

// lineOf returns the line at which the rows of a stage are shown: where it begins, or where it ends if there is another
// query in it.
function lineOf(stage: Stage, answer: Stages): number {
  if (isPart(stage)) return stage.from_line;
  const inner = answer.blocks.some(
    ({ id, stages }) =>
      id !== stage.block &&
      stages.some((one) => !isPart(one) && one.from_line >= stage.from_line && one.to_line <= stage.to_line),
  );
  return inner ? stage.to_line : stage.from_line;
}

// repeatedOf returns how many rows of a join are another copy of a row that it kept, or undefined if it is not known.
export function repeatedOf(stage: Stage): number | undefined {
  if (stage.kind !== "join") return undefined;
  const { rows_in: left, rows_right: right, rows_out: out } = stage;
  const { pairs, left_unmatched: noLeft, right_unmatched: noRight } = stage.multiplied ?? {};
  const [rows, unmatched] = stage.join === "right" ? [right, noRight] : [left, noLeft];
  if (rows !== undefined && unmatched !== undefined && pairs !== undefined)
    return Math.max(0, pairs - (rows - unmatched));
  if (left !== undefined && out !== undefined && out > left && (right ?? 2) > 0) return out - left;
  return undefined;
}

// Bar has the parts of a stage's rows, as shares of the most rows of all stages.
export interface Bar {
  kept: number;
  repeated: number;
  lost: number;
}

// lostOf returns how many rows a stage has lost. A part of a stage loses none.
export const lostOf = (stage: Stage) => (isPart(stage) ? 0 : (stage.lost ?? 0));

// mostRows returns the most rows that a stage has or had before it.
export function mostRows(answer: Stages): number {
  const numbers = answer.blocks.flatMap(({ stages }) =>
    stages.flatMap((s) => [s.rows_out ?? s.estimated_out ?? 0, (s.rows_out ?? 0) + lostOf(s)]),
  );
  return Math.max(1, ...numbers);
}

export function barOf(stage: Stage, most: number): Bar | undefined {
  const rows = stage.rows_out ?? stage.estimated_out;
  if (rows === undefined || stage.kind === "window") return undefined;
  const repeated = Math.min(repeatedOf(stage) ?? 0, rows);
  return { kept: (rows - repeated) / most, repeated: repeated / most, lost: lostOf(stage) / most };
}

// firstEmpty returns the first stage that is known to leave no row of the result, and whether all stages before it were
// counted. Subqueries in expressions may be empty.
export function firstEmpty(answer: Stages): { stage: Stage; isFirst: boolean } | undefined {
  const read = new Set(answer.blocks.flatMap(({ stages }) => stages.map(({ reads }) => reads)));
  const stages = answer.blocks
    .filter(({ id, kind }) => kind === "main" || kind === "arm" || read.has(id))
    .flatMap((block) => block.stages.filter((stage) => !isPart(stage)));
  const n = stages.findIndex(({ rows_out: out, kind }) => out === 0 && kind !== "order");
  const stage = stages[n];
  return stage && { stage, isFirst: stages.slice(0, n).every(({ rows_out: out }) => out !== undefined) };
}

// columnsOf returns the columns of the tables of a statement, as a question about a row names them.
export function columnsOf(answer: Stages): string[] {
  const names = answer.blocks.flatMap(({ stages, kind }) =>
    stages.flatMap((s) =>
      s.kind === "from" && kind !== "view" && s.name && s.reads < 0
        ? (s.sample?.columns ?? []).map((column) => `${s.name}.${column}`)
        : [],
    ),
  );
  return [...new Set(names)];
}
