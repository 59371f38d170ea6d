import type { Problem } from "../api/problem";
import { count, plural } from "../format";
import type { FollowedStage, Stage, WhyNot } from "./answer";
import { repeatedOf } from "./lines";

// What the answers about statements mean, in words.

// reasons say why a statement, a block or a stage has no numbers.
const reasons: Record<string, string> = {
  "no-stages": "only a SELECT has rows after each line",
  volatile: "the statement gives other rows each time that it runs",
  "derived-statement-differs": "this form of SQL cannot be divided into lines for certain",
  "not-traceable": "this form of SQL cannot be divided into lines yet",
  lateral: "it is computed for each row of the tables before it",
  "masked-column": "it needs a masked column",
  "over-budget": "it would take too long",
  "too-many-stages": "the statement has too many parts",
  "parameters-not-kept": "the value of a parameter is not on record",
  permission: "the key may not read a table of it",
  inconsistent: "the counts did not fit to the rows of the statement",
  "schema-changed": "the tables have changed since the statement ran",
  timeout: "it took too long",
  cancelled: "it was cancelled",
};

// because returns the words for a reason, or the message of the service.
export function because(reason: string | undefined, message = ""): string {
  return (Object.hasOwn(reasons, reason ?? "") && reasons[reason!]) || message || reason || "the reason is not known";
}

// refusalOf returns what the page says of a question that the service did not answer.
export function refusalOf(problem: Problem): { title: string; detail: string; isFinal: boolean } {
  const isRefused = problem.status === 422 && problem.reason !== "";
  if (!isRefused) return { title: problem.title, detail: problem.detail, isFinal: problem.status === 403 };
  const title = Object.hasOwn(reasons, problem.reason)
    ? `Not counted: ${reasons[problem.reason]}`
    : "The database does not answer this";
  const mayPass = ["timeout", "cancelled", "unavailable", "failed"].includes(problem.reason);
  return { title, detail: problem.detail, isFinal: !mayPass };
}

const rough = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 });

// rowsOf returns the rows after a stage as a short text.
export function rowsOf(stage: Stage): string {
  if (stage.window) return plural(stage.window.partitions, "partition");
  if (stage.rows_out !== undefined) return count(stage.rows_out);
  if (stage.estimated_out !== undefined) return `about ${rough.format(stage.estimated_out)}`;
  return "not counted";
}

// uncounted returns why the rows after a stage are not known for certain, or "".
export function uncounted(stage: Stage): string {
  if (stage.rows_out !== undefined) return "";
  if (stage.state === "estimated") return "The planner's estimate: counting would take too long.";
  if (stage.state === "failed")
    return `The count failed${stage.message ? `: ${stage.message}` : ""}. The statement itself may leave out the rows that it fails for.`;
  return `Not counted: ${because(stage.reason, stage.message)}.`;
}

const are = (n: number) => (n === 1 ? "is" : "are");

// describe returns what a stage does to the rows, in sentences.
export function describe(stage: Stage, right?: Stage): string[] {
  const { rows_in: before, rows_out: after, lost } = stage;
  if (after === undefined) return [];
  const rows = plural(after, "row");
  const of = before === undefined ? "" : ` of ${count(before)}`;
  switch (stage.kind) {
    case "cte":
      return [`All of it has ${rows}.`];
    case "from":
      return [`${stage.name ?? stage.text} has ${rows}.`];
    case "join":
      return describeJoin(stage, right);
    case "where":
    case "having": {
      const one = stage.kind === "having" ? "group" : "row";
      const sentences = [`${count(after)}${of} ${before === 1 ? one : `${one}s`} pass${after === 1 ? "es" : ""}.`];
      if (lost) sentences.push(`${count(lost)} ${lost === 1 ? "does" : "do"} not${nulls(stage.null, lost)}.`);
      return sentences;
    }
    case "group":
      return [
        before === undefined
          ? `${plural(after, "group")}.`
          : `${plural(before, "row")} become ${plural(after, "group")}.`,
      ];
    case "filter": {
      const none = stage.empty_groups;
      const empty = none ? [`In ${plural(none, "group")} none does.`] : [];
      return [`${count(after)}${of} rows pass the FILTER, which changes the aggregate only.`, ...empty];
    }
    case "grouping-set":
      return [`${plural(after, "group")} of this grouping.`];
    case "subquery":
      return [
        `It runs for ${before === undefined ? "each row" : plural(before, "row")} at most, and is true or has a value for ${count(after)}.`,
        ...(stage.null ? [`It is NULL for ${count(stage.null)}.`] : []),
      ];
    case "window":
      return describeWindow(stage);
    case "distinct":
      return [
        `${count(after)}${of} rows are left.`,
        ...(lost ? [`${count(lost)} ${are(lost)} the same as another.`] : []),
      ];
    case "limit":
      return [`${count(after)}${of} rows are taken.`, ...(lost ? [`${count(lost)} ${are(lost)} cut off.`] : [])];
    case "order":
      return [`The order of ${rows}.`];
    default:
      return [`${rows} after it.`];
  }
}

function nulls(none: number | undefined, lost: number): string {
  if (!none) return "";
  return none === lost ? ", because the condition is NULL" : `; for ${count(none)} of them the condition is NULL`;
}

// sideOf returns what a join joins to the rows before it.
export function sideOf(join: Stage, right: Stage | undefined): string {
  const text = right?.text.replace(/\s+/g, " ") ?? "";
  return (text.length < 50 && !text.includes("(") && text) || join.name || "the other side";
}

function describeWindow({ window }: Stage): string[] {
  if (!window) return [];
  const { partitions, largest, tied } = window;
  return [
    `${plural(partitions, "partition")}, the largest with ${plural(largest, "row")}.`,
    ...(tied ? [`${count(tied)} ${are(tied)} equal to others in its order: their values depend on chance.`] : []),
  ];
}

function describeJoin(stage: Stage, right: Stage | undefined): string[] {
  const { rows_in: left, rows_right: other, rows_out: after, multiplied: m } = stage;
  const name = sideOf(stage, right);
  const sides =
    left !== undefined && other !== undefined ? `${plural(left, "row")} with ${count(other)} of ${name}` : name;
  const sentences = [`Joins ${sides}: ${plural(after!, "row")}.`];
  const repeated = repeatedOf(stage);
  const most = stage.join === "right" ? m?.max_left : m?.max_right;
  if (repeated)
    sentences.push(
      `${count(repeated)} ${are(repeated)} repeated${most && most > 1 ? `: a row has up to ${count(most)} partners` : ""}.`,
    );
  if (stage.join === "cross" && left !== undefined)
    sentences.push("It has no condition: each row meets each of the other side.");
  const { left_unmatched: noLeft, right_unmatched: noRight, null_keys: none } = m ?? {};
  const isKept = (side: string) => stage.join === side || stage.join === "full";
  if (noLeft) sentences.push(unmatched(noLeft, "the rows before it", isKept("left")));
  if (noRight) sentences.push(unmatched(noRight, name, isKept("right")));
  if (none) sentences.push(`${plural(none, "key")} ${are(none)} NULL, which matches nothing.`);
  return sentences;
}

function unmatched(n: number, of: string, isKept: boolean): string {
  const kept = isKept ? `${are(n)} kept, with NULL in place of a partner` : `${are(n)} left out`;
  return `${count(n)} of ${of} ${n === 1 ? "matches" : "match"} nothing and ${kept}.`;
}

// plainText returns a text of the service for the page: it writes (l4) for a line.
export const plainText = (text: string) => text.replace(/ \(l(\d+)\)/g, " (line $1)");

const changes: Record<string, string> = {
  no: "The data has changed: the statement returns other rows today than it did then.",
  "no-clock": "The statement returns other rows today than it did then, because it reads the clock.",
  "other-order": "The statement returns the same rows today as it did then, in another order.",
};

// sameResult says how the rows of today differ from those of the past, or "" if they do not, or that is not known.
export function sameResult(of: string | undefined): string {
  return Object.hasOwn(changes, of ?? "") ? changes[of!]! : "";
}

const losses: Record<string, string> = {
  "no-row": "the table has no such row",
  "no-partner": "no row of the other side matches",
  "null-key": "the key of the join is NULL there, which matches nothing",
  false: "the condition is false there",
  null: "the condition is NULL there, which counts as false: a column in it is NULL",
  "false-or-null": "the condition is false for some of these rows, and NULL for the others",
  "no-group": "no group has the value",
  limit: "other rows come first, and the limit or offset cuts it off",
  distinct: "another row is taken for the same value of DISTINCT ON",
  set: "the set operation leaves it out",
};

// missing returns what became of the rows that a question follows.
export function missing(answer: WhyNot): string {
  const of = answer.columns
    .map(({ meaning, value }) => (value === null ? `${meaning} IS NULL` : `${meaning} = ${String(value)}`))
    .join(", ");
  if (answer.missing === false) return `A row with ${of} is in the result.`;
  const end = answer.missing ? "is not in the result" : answer.lost ? "is lost" : "could not be followed to the result";
  if (!answer.lost) return `A row with ${of} ${end}.`;
  const why = Object.hasOwn(losses, answer.because ?? "") ? `: ${losses[answer.because!]}` : "";
  return `A row with ${of} ${end}. Line ${answer.lost.from_line} loses it${why}.`;
}

// followed returns the rows of a question after a stage.
export function followed(stage: FollowedStage): string {
  return stage.rows === undefined ? `not counted: ${because(stage.reason, stage.message)}` : plural(stage.rows, "row");
}
