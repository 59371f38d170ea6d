import { useEffect, useId, useState } from "preact/hooks";
import { duration, plural } from "../format";
import type { Finding, Stages } from "./answer";
import { useAsk } from "./ask";
import { Asking, Stopped, Unanswered } from "./asking";
import { Findings } from "./findings";
import { columnsOf, firstEmpty } from "./lines";
import { buttonOf, LinesTable, lineID } from "./table";
import { WhyMissing } from "./why_not";
import { sameResult } from "./words";

export interface StagesProps {
  path: string; // of the statement, such as /executions/ID/queries/1
  sql: string;
  label: string;
}

// StagesView counts the rows after each line of a statement, and shows them.
export function StagesView({ path, sql, label }: StagesProps) {
  const { answer, problem, isRunning, isStopped, ask, stop } = useAsk<Stages>(`${path}/stages`);
  const again = (all = false) => void ask({ samples: true, all });
  useEffect(() => again(), [path]);
  return (
    <section class="stages" aria-label={`Rows after each line of ${label}`}>
      {isRunning && <Asking what="Counting the rows after each line" stop={stop} />}
      {isStopped && <Stopped again={() => again()} />}
      {problem && <Unanswered problem={problem} again={() => again()} />}
      {answer && !isRunning && <Answer path={path} sql={sql} of={answer} all={() => again(true)} />}
    </section>
  );
}

function Answer({ path, sql, of: answer, all }: { path: string; sql: string; of: Stages; all: () => void }) {
  const id = useId();
  const [opened, setOpened] = useState<number>();
  const goTo = (name: string) => {
    const place = document.getElementById(name);
    place?.focus({ preventScroll: true });
    place?.scrollIntoView({ block: "center" });
  };
  const show = (stage: number) => {
    const shown = tableStage(answer, stage);
    setOpened(shown);
    goTo(buttonOf(id, shown));
  };
  const showFinding = ({ stage, line }: Finding) => (stage >= 0 ? show(stage) : goTo(lineID(id, line)));
  return (
    <>
      <Notes of={answer} all={all} show={show} />
      <LinesTable sql={sql} answer={answer} id={id} opened={opened} open={setOpened} />
      <Findings of={answer} show={showFinding} />
      <WhyMissing path={path} columns={columnsOf(answer)} show={show} />
      <p class="muted cost">
        {answer.same_result?.startsWith("yes") && "The same rows today as recorded. "}
        As of now: the statement took {duration(answer.ms)}, all of this {duration(answer.total_ms)} with{" "}
        {plural(answer.statements, "count")}.
      </p>
    </>
  );
}

// tableStage returns the stage whose row in the table shows another: that of a join shows the table that it joins.
function tableStage(answer: Stages, id: number): number {
  const stages = answer.blocks.flatMap((block) => block.stages);
  const stage = stages.find((one) => one.id === id);
  if (stage?.kind !== "from") return id;
  const join = stages.find(
    ({ kind, block, name, from_line: from, to_line: to }) =>
      kind === "join" &&
      block === stage.block &&
      name === stage.name &&
      stage.from_line >= from &&
      stage.from_line <= to,
  );
  return join?.id ?? id;
}

// Notes say what one has to know before one reads the numbers.
function Notes({ of: answer, all, show }: { of: Stages; all: () => void; show: (stage: number) => void }) {
  const changed = sameResult(answer.same_result);
  const empty = answer.rows === 0 ? firstEmpty(answer) : undefined;
  const stages = answer.blocks.flatMap((block) => block.stages);
  const isPart = stages.some(({ state, reason }) => state === "estimated" || reason === "over-budget");
  return (
    <>
      {changed && <p class="notice warn">{changed}</p>}
      {answer.schema_changed && (
        <p class="notice warn">Its tables have other columns or keys today than they had then.</p>
      )}
      {answer.rows === 0 && (
        <p class="stages-note">
          The statement returns no rows now.{" "}
          {empty && (
            <>
              {empty.isFirst
                ? "The first line that leaves none is "
                : "Not all lines are counted. None are left after "}
              <button class="link" onClick={() => show(empty.stage.id)}>
                line {empty.stage.from_line}
              </button>
              .
            </>
          )}
        </p>
      )}
      {isPart && (
        <p class="stages-note">
          Some lines are not counted, because it would take too long.{" "}
          <button onClick={all}>Count them, for at most 10 s</button>
        </p>
      )}
    </>
  );
}
