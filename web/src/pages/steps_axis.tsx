import { useMemo } from "preact/hooks";
import { count, plural } from "../format";
import { Icon } from "../shell";
import { buckets, firstAtLeast, type StepLines } from "./steps_lines";

const bucketCount = 1000; // more than a slider has pixels on most screens

// LineRuns marks on the axis of all steps when a line ran, and moves between these steps.
export function LineRuns(props: {
  lines: StepLines;
  line: number;
  step: number;
  go: (step: number) => void;
  pick: (line: number) => void;
}) {
  const { lines, line, step, go } = props;
  const lineRuns = useMemo(() => (line ? lines.runsOf(line) : new Uint32Array()), [lines, line]);
  const position = lines.positionOf(step);
  const at = firstAtLeast(lineRuns, position);
  const runsHere = lineRuns[at] === position;
  const before = lineRuns[at - 1];
  const after = lineRuns[runsHere ? at + 1 : at];
  const number = lineRuns.length;
  const said =
    number === 0
      ? "This line did not run."
      : runsHere
        ? `run ${count(at + 1)} of ${count(number)}`
        : plural(number, "run");
  return (
    <div class="hits">
      <label>
        Runs of line
        <input
          type="number"
          min={1}
          value={line || ""}
          placeholder="none"
          onInput={(event) => props.pick(Number(event.currentTarget.value))}
        />
      </label>
      <button
        aria-label="Previous run of the line"
        title="Previous run of the line (p)"
        disabled={before === undefined}
        onClick={() => go(lines.stepAt(before!))}
      >
        <Icon of="M12 3L5 8l7 5z" />
      </button>
      <button
        aria-label="Next run of the line"
        title="Next run of the line (n)"
        disabled={after === undefined}
        onClick={() => go(lines.stepAt(after!))}
      >
        <Icon of="M4 3l7 5-7 5z" />
      </button>
      <span class="muted" role="status">
        {line ? said : "Click a line number, or press h, to mark when a line ran."}
      </span>
    </div>
  );
}

// Ticks draws the axis: where a line ran, which steps showed an output, and where steps are missing.
export function Ticks({ lines, line, outputs }: { lines: StepLines; line: number; outputs: number[] }) {
  const runs = useMemo(() => {
    if (!line) return "";
    const numbers = buckets(lines.runsOf(line), lines.count, bucketCount);
    const most = Math.max(1, ...numbers);
    return [...numbers].map((n, x) => (n ? `M${x}.5 12V${(8 - (8 * n) / most).toFixed(1)}` : "")).join("");
  }, [lines, line]);
  if (!runs && lines.gaps.length === 0 && outputs.length === 0) return null;
  const across = (step: number, width = lines.count) =>
    ((lines.positionOf(step) * bucketCount) / Math.max(1, width)).toFixed(1);
  const label = [
    line ? `Runs of line ${line}` : "",
    outputs.length ? `${plural(outputs.length, "step")} with outputs` : "",
    lines.gaps.length ? plural(lines.gaps.length, "gap") : "",
  ]
    .filter(Boolean)
    .join(". ");
  return (
    <svg class="ticks" viewBox={`0 0 ${bucketCount} 12`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="runs" d={runs} />
      {outputs.map((step) => (
        <path key={step} class="shown" d={`M${across(step, lines.count - 1)} 6V12`} />
      ))}
      {lines.gaps.map((gap) => (
        <path key={gap.first} class="cut" d={`M${across(gap.first)} 0V12`} />
      ))}
    </svg>
  );
}
