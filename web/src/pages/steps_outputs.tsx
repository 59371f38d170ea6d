import { useMemo } from "preact/hooks";
import type { Output } from "../api/records";
import { count } from "../format";
import { OutputPanel, Outputs } from "./execution_outputs";
import { stepsOf } from "./steps_marks";

// StepOutputs shows the figures and other outputs that the run has shown up to a step, the newest first. A recording of
// an older version has outputs without steps, which are those of the whole run.
export function StepOutputs({ outputs, step, go }: { outputs: Output[]; step: number; go: (step: number) => void }) {
  const number = outputs.filter((output) => output.step !== undefined && output.step <= step).length;
  const withoutStep = useMemo(() => outputs.filter((output) => output.step === undefined), [outputs]);
  const later = stepsOf(outputs).find((each) => each > step);
  // The number says which outputs these are. While it stays, no frame is drawn again.
  const shown = useMemo(
    () =>
      outputs
        .map((output, index) => ({ output, index }))
        .filter(({ output }) => output.step !== undefined && output.step <= step)
        .sort((a, b) => b.output.step! - a.output.step! || b.index - a.index)
        .map(({ output, index }) => (
          <OutputPanel key={index} output={output} actions={<Shower step={output.step!} go={go} />} />
        )),
    [outputs, number],
  );
  return (
    <>
      {outputs.length > withoutStep.length && (
        <details class="outputs" open>
          <summary>Outputs up to this step</summary>
          {later !== undefined && (
            <p class="muted">
              Next output: <Shower step={later} go={go} />
            </p>
          )}
          {shown}
        </details>
      )}
      {withoutStep.length > 0 && (
        <details class="outputs" open>
          <summary>Outputs of the whole run</summary>
          <Outputs outputs={withoutStep} />
        </details>
      )}
    </>
  );
}

function Shower({ step, go }: { step: number; go: (step: number) => void }) {
  return (
    <button class="link" onClick={() => go(step)}>
      step {count(step)}
    </button>
  );
}
