import { count } from "../format";
import { Icon } from "../shell";
import { LineRuns, Ticks } from "./steps_axis";
import type { Recording } from "./steps_recording";

// Scrubber has the axis of all steps with a slider, and buttons that move along it.
export function Scrubber(props: {
  recording: Recording;
  picked: number; // the line whose runs are marked, or 0
  pick: (line: number) => void;
  line: number; // of the step
  outputs: number[]; // steps that showed an output
}) {
  const { recording, picked, pick, line, outputs } = props;
  const { lines, step, total, go } = recording;
  const position = lines.positionOf(step);
  const goPosition = (to: number) => go(lines.stepAt(to));
  return (
    <div class="scrubber panel" role="group" aria-label="Step">
      <button aria-label="First step" title="First step (Home)" disabled={position <= 0} onClick={() => goPosition(0)}>
        <Icon of="M4 3v10M13 3L6 8l7 5z" />
      </button>
      <button
        aria-label="Step back"
        title="Step back (←, Shift for ten)"
        disabled={position <= 0}
        onClick={() => goPosition(position - 1)}
      >
        <Icon of="M12 3L5 8l7 5z" />
      </button>
      <button
        aria-label="Step forward"
        title="Step forward (→, Shift for ten)"
        disabled={position >= lines.count - 1}
        onClick={() => goPosition(position + 1)}
      >
        <Icon of="M4 3l7 5-7 5z" />
      </button>
      <button
        aria-label="End of the run"
        title="End of the run (End)"
        disabled={position >= lines.count - 1}
        onClick={() => goPosition(lines.count - 1)}
      >
        <Icon of="M12 3v10M3 3l7 5-7 5z" />
      </button>
      <div class="step-axis">
        <Ticks lines={lines} line={picked} outputs={outputs} />
        <input
          type="range"
          aria-label="Step"
          min={1}
          max={lines.count}
          value={position + 1}
          aria-valuetext={step > total ? "End" : `Step ${step}, line ${line}`}
          onInput={(event) => goPosition(Number(event.currentTarget.value) - 1)}
        />
      </div>
      <output>
        {step > total ? "end, after" : "step"} {count(Math.min(step, total))} of {count(total)}
      </output>
      {recording.areLinesLoaded && <LineRuns lines={lines} line={picked} step={step} go={go} pick={pick} />}
    </div>
  );
}
