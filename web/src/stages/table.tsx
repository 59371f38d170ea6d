import { Fragment } from "preact";
import { count } from "../format";
import type { Finding, Stages } from "./answer";
import { isAbout, isPart, type Line, linesOf, mostRows, type Step } from "./lines";
import { SQLText } from "./sql_text";
import { StepChange, StepDetails, StepRows } from "./step";

interface Opening {
  opened: number | undefined; // the stage whose details are shown
  open: (stage: number | undefined) => void;
}

// buttonOf returns the id of the button that opens a stage.
export const buttonOf = (table: string, stage: number) => `${table}-stage-${stage}`;

// lineID returns the id of the row of a line.
export const lineID = (table: string, line: number) => `${table}-line-${line}`;

interface TableProps extends Opening {
  sql: string;
  answer: Stages;
  id: string;
}

// LinesTable shows a statement with the rows after each of its lines.
export function LinesTable({ sql, answer, id, ...opening }: TableProps) {
  const most = mostRows(answer);
  return (
    <table class="lines-table">
      <caption class="visually-hidden">The lines of the statement, with the rows after each</caption>
      <thead>
        <tr>
          <th scope="col">Line</th>
          <th scope="col">Statement</th>
          <th scope="col">Rows after it</th>
          <th scope="col">Lost or repeated</th>
        </tr>
      </thead>
      <tbody>
        {linesOf(sql, answer).map((line) => (
          <LineRows key={line.number} line={line} most={most} id={id} {...opening} />
        ))}
      </tbody>
      <tfoot>
        <tr>
          <td />
          <th scope="row">Result</th>
          <td>
            <span class="step-count">
              {answer.truncated && "more than "}
              {count(answer.rows)}
            </span>
          </td>
          <td />
        </tr>
      </tfoot>
    </table>
  );
}

interface RowProps extends Opening {
  line: Line;
  most: number;
  id: string;
}

// LineRows shows a line. If it has several steps, each has a row of its own below.
function LineRows({ line, ...props }: RowProps) {
  const [only] = line.steps;
  if (line.steps.length === 1 && !isPart(only!.stage) && !only!.view)
    return <StepRow {...props} line={line} step={only!} isLine />;
  const mark = line.findings.length > 0 && line.steps.length === 0;
  return (
    <>
      <tr id={lineID(props.id, line.number)} tabIndex={-1} class={mark ? "has-finding" : ""}>
        <th scope="row">
          {mark && <Mark of={line.findings} />}
          {line.number}
        </th>
        <td class="line-text">
          <SQLText text={line.text} />
        </td>
        <td />
        <td />
      </tr>
      {line.steps.map((step) => (
        <StepRow key={step.stage.id} {...props} line={line} step={step} />
      ))}
    </>
  );
}

// Mark says that there are findings about a line.
function Mark({ of }: { of: Finding[] }) {
  if (of.length === 0) return null;
  const text = of.some(({ score }) => score >= 90) ? "Check first" : "Check if intended";
  return (
    <span class="finding-mark" title={text}>
      <span aria-hidden="true">!</span>
      <span class="visually-hidden">{text}: line </span>
    </span>
  );
}

function StepRow({ line, step, isLine = false, most, id, opened, open }: RowProps & { step: Step; isLine?: boolean }) {
  const { stage } = step;
  const isOpened = opened === stage.id;
  const findings = line.findings.filter((finding) => isLine || isAbout(finding, step));
  const classes = [findings.length > 0 && "has-finding", isOpened && "is-opened", !isLine && "part"];
  return (
    <Fragment>
      <tr
        id={isLine ? lineID(id, line.number) : undefined}
        tabIndex={isLine ? -1 : undefined}
        class={classes.filter(Boolean).join(" ")}
      >
        <th scope="row">
          <Mark of={findings} />
          {isLine ? line.number : <span class="visually-hidden">{line.number}, a part</span>}
        </th>
        <td class="line-text">
          <button
            id={buttonOf(id, stage.id)}
            aria-expanded={isOpened}
            title="What it does to the rows, with a few of them"
            onClick={() => open(isOpened ? undefined : stage.id)}
          >
            <SQLText text={isLine ? line.text : partText(line, step)} />
          </button>
        </td>
        <td>
          <StepRows of={stage} most={most} />
        </td>
        <td>
          <StepChange of={stage} />
        </td>
      </tr>
      {isOpened && (
        <tr class="opened-step">
          <td colSpan={4}>
            <StepDetails of={step} />
          </td>
        </tr>
      )}
    </Fragment>
  );
}

const words: Record<string, string> = {
  group: "GROUP BY",
  having: "HAVING",
  where: "WHERE",
  from: "FROM",
  cte: "WITH",
  distinct: "DISTINCT",
};

const maxPart = 90; // characters

// partText returns the text of a step that is a part of a line.
function partText({ steps }: Line, step: Step): string {
  const { kind, block, name } = step.stage;
  if (kind === "set" && name) return name;
  if (kind === "grouping-set" && name) return `grouped by ${name}`;
  const whole = step.stage.text.replace(/\s+/g, " ");
  const text = whole.length > maxPart ? `${whole.slice(0, maxPart - 1)}…` : whole;
  const before = steps[steps.indexOf(step) - 1]?.stage;
  const isNext = before?.kind === kind && before.block === block && kind === "where";
  const word = isNext ? "AND" : Object.hasOwn(words, kind) ? words[kind]! : "";
  const part = word && !text.toUpperCase().startsWith(word) ? `${word} ${text}` : text;
  return step.view ? `${step.view}: ${part}` : part;
}
