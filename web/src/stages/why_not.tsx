import { useId, useState } from "preact/hooks";
import { count } from "../format";
import type { FollowedStage, WhyNot } from "./answer";
import { useAsk } from "./ask";
import { Asking, Stopped, Unanswered } from "./asking";
import { followed, missing, sameResult } from "./words";

// WhyMissing asks which line of a statement loses a row. show leads to a stage of the table of lines.
export function WhyMissing(props: { path: string; columns: string[]; show: (stage: number) => void }) {
  const { path, columns, show } = props;
  const id = useId();
  const [column, setColumn] = useState("");
  const [value, setValue] = useState("");
  const [isNull, setNull] = useState(false);
  const { answer, problem, isRunning, isStopped, ask, stop } = useAsk<WhyNot>(`${path}/why-not`);
  const again = () => void ask({ values: { [column.trim()]: isNull ? null : value } });
  return (
    <section class="why-missing" aria-label="Why is this row missing?">
      <h3>Why is this row missing?</h3>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (column.trim()) again();
        }}
      >
        <label>
          Column
          <input
            name="column"
            list={`${id}-columns`}
            required
            autocomplete="off"
            spellcheck={false}
            placeholder={columns[0] ?? "orders.id"}
            value={column}
            onInput={(event) => setColumn(event.currentTarget.value)}
          />
        </label>
        <datalist id={`${id}-columns`}>
          {columns.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <label>
          Value
          <input
            name="value"
            autocomplete="off"
            spellcheck={false}
            disabled={isNull}
            value={isNull ? "" : value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        </label>
        <label class="is-null">
          <input type="checkbox" checked={isNull} onChange={(event) => setNull(event.currentTarget.checked)} />
          NULL
        </label>
        <button disabled={isRunning}>Find the line</button>
      </form>
      {isRunning && <Asking what="Following the row through the statement" stop={stop} />}
      {isStopped && <Stopped again={again} />}
      {problem && <Unanswered problem={problem} again={again} />}
      {answer && !isRunning && <Followed of={answer} show={show} />}
    </section>
  );
}

function Followed({ of: answer, show }: { of: WhyNot; show: (stage: number) => void }) {
  const changed = sameResult(answer.same_result);
  return (
    <div class="followed" role="status">
      <p>
        <strong>{missing(answer)}</strong> {changed}
      </p>
      {answer.stages.length > 0 && (
        <ol aria-label="Such rows after each line">
          {answer.stages.map((stage) => (
            <FollowedRow key={stage.id} of={stage} isLost={stage.id === answer.lost?.id} show={show} />
          ))}
        </ol>
      )}
      {answer.not_looked.map((what) => (
        <p key={what} class="muted">
          Not looked at: {what}
        </p>
      ))}
    </div>
  );
}

function FollowedRow(props: { of: FollowedStage; isLost: boolean; show: (stage: number) => void }) {
  const { of: stage, isLost, show } = props;
  return (
    <li class={isLost ? "lost" : ""}>
      <button class="link" onClick={() => show(stage.id)}>
        line {stage.from_line}
      </button>
      <code>{stage.text.replace(/\s+/g, " ")}</code>
      <span class="step-count">
        {isLost && <span class="visually-hidden">lost here: </span>}
        {stage.rows_in !== undefined && `${count(stage.rows_in)} → `}
        {followed(stage)}
      </span>
    </li>
  );
}
