import { useState } from "preact/hooks";
import { count, plural } from "../format";
import { Icon } from "../shell";
import { LineRuns, MarkButtons, Ticks } from "./steps_axis";
import type { Mark } from "./steps_marks";
import type { Recording } from "./steps_recording";

// Scrubber has the axis of all steps with a slider, and buttons that move along it.
export function Scrubber(props: {
  recording: Recording;
  picked: number; // the line whose runs are marked, or 0
  pick: (line: number) => void;
  line: number; // of the step
  marks: Mark[];
}) {
  const { recording, picked, pick, line, marks } = props;
  const [isOpen, setOpen] = useState(false); // on a phone, where the marks are folded
  const { lines, step, total, go } = recording;
  const position = lines.positionOf(step);
  const goPosition = (to: number) => go(lines.stepAt(to));
  return (
    <div class={isOpen ? "scrubber panel open" : "scrubber panel"} role="group" aria-label="Step">
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
        <Ticks lines={lines} line={picked} marks={marks} />
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
      <output>{step > total ? `end, ${plural(total, "step")}` : `step ${count(step)} of ${count(total)}`}</output>
      <button class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Marks
      </button>
      {recording.areLinesLoaded && (
        <div class="scrubber-more">
          <MarkButtons marks={marks} step={step} go={go} />
          <LineRuns lines={lines} line={picked} step={step} go={go} pick={pick} />
        </div>
      )}
    </div>
  );
}
