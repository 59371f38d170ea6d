import { count } from "../format";
import type { Keys, Stage } from "./answer";
import { barOf, isPart, lostOf, repeatedOf, type Step } from "./lines";
import { SampleTable, shownOf } from "./sample";
import { describe, rowsOf, sideOf, uncounted } from "./words";

// The parts of the table of lines that show one step.

const percent = (share: number) => `${Math.min(100, share * 100)}%`;

// StepRows shows the rows after a step, and a bar for them.
export function StepRows({ of, most }: { of: Stage; most: number }) {
  const bar = barOf(of, most);
  return (
    <span class="step-rows">
      <span class={bar && !isPart(of) ? "step-count" : "step-count muted"}>{rowsOf(of)}</span>
      <span class="step-bar" aria-hidden="true">
        {bar && (
          <>
            {bar.kept > 0 && (
              <span class={of.state === "estimated" ? "kept estimated" : "kept"} style={{ width: percent(bar.kept) }} />
            )}
            {bar.repeated > 0 && <span class="repeated" style={{ width: percent(bar.repeated) }} />}
            {bar.lost > 0 && <span class="lost" style={{ width: percent(bar.lost) }} />}
          </>
        )}
      </span>
    </span>
  );
}

// StepChange says how many rows a step has lost and repeated.
export function StepChange({ of }: { of: Stage }) {
  const repeated = repeatedOf(of);
  const lost = lostOf(of);
  if (!lost && !repeated) return null;
  return (
    <span class="step-change">
      {lost ? <span class="lost">−{count(lost)} lost</span> : null}
      {repeated ? <span class="repeated">+{count(repeated)} repeated</span> : null}
    </span>
  );
}

// StepDetails says what a step did, with a few of its rows and keys.
export function StepDetails({ of: { stage, right } }: { of: Step }) {
  const { sample, keys = [] } = stage;
  const unknown = uncounted(stage);
  return (
    <div class="step-details">
      <p>
        {unknown && <>{unknown} </>}
        {describe(stage, right).join(" ")}
      </p>
      {keys.length > 0 && (
        <div class="step-keys">
          {keys.map((one) => (
            <div key={`${one.kind} ${one.side}`} class={one.kind}>
              <h3>{keysTitle(one, sideOf(stage, right))}</h3>
              <SampleTable of={one} label={keysTitle(one, sideOf(stage, right))} />
            </div>
          ))}
        </div>
      )}
      {sample && sample.rows.length > 0 && (
        <div>
          <h3>Rows after it, {shownOf(sample, stage.rows_out)}</h3>
          <SampleTable of={sample} label={`Rows after ${stage.text}`} />
        </div>
      )}
    </div>
  );
}

function keysTitle({ kind, side }: Keys, name: string): string {
  const of = side === "right" ? name : "the rows before it";
  return kind === "repeated" ? `Keys that several rows of ${of} have` : `Keys of ${of} that match nothing`;
}
