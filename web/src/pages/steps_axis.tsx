import { useMemo } from "preact/hooks";
import { count, plural } from "../format";
import { hasKeys } from "../parts/has_keys";
import { Icon } from "../shell";
import { buckets, firstAtLeast, type StepLines } from "./steps_lines";
import { after, type Mark } from "./steps_marks";

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
          placeholder="e.g. 4"
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
        {line ? said : `Click a line number${hasKeys ? ", or press h," : ""} to mark when a line ran.`}
      </span>
    </div>
  );
}

// MarkButtons say what the marks on the axis are, and go from one to the next.
export function MarkButtons({ marks, step, go }: { marks: Mark[]; step: number; go: (step: number) => void }) {
  if (marks.length === 0) return null;
  return (
    <div class="mark-buttons" role="group" aria-label="What happened">
      {marks.map(({ kind, label, steps }) => (
        <button
          key={kind}
          class="mark-button"
          title={`Go to the next ${label}, step ${count(after(steps, step))}`}
          onClick={() => go(after(steps, step))}
        >
          <svg viewBox="0 0 8 12" width="8" height="12" aria-hidden="true">
            <rect class={`mark-${kind}`} x="2" width="4" height="12" rx="1" />
          </svg>
          {kind === "failure" ? "failure" : plural(steps.length, label, label === "query" ? "queries" : undefined)}
        </button>
      ))}
    </div>
  );
}

// Ticks draws the axis: where a line ran, what happened at which steps, and where steps are missing.
export function Ticks({ lines, line, marks }: { lines: StepLines; line: number; marks: Mark[] }) {
  const runs = useMemo(() => {
    if (!line) return "";
    const numbers = buckets(lines.runsOf(line), lines.count, bucketCount);
    const most = Math.max(1, ...numbers);
    return [...numbers].map((n, x) => (n ? `M${x}.5 12V${(8 - (8 * n) / most).toFixed(1)}` : "")).join("");
  }, [lines, line]);
  const width = Math.max(1, lines.count - 1);
  const paths = useMemo(
    () =>
      marks.map(({ kind, steps }) => {
        const places = new Set(steps.map((step) => Math.round((lines.positionOf(step) * bucketCount) / width)));
        return { kind, path: [...places].map((x) => `M${x} 6V12`).join("") };
      }),
    [marks, lines],
  );
  if (!runs && lines.gaps.length === 0 && marks.length === 0) return null;
  const across = (step: number) => ((lines.positionOf(step) * bucketCount) / Math.max(1, lines.count)).toFixed(1);
  const label = [
    line ? `Runs of line ${line}` : "",
    ...marks.map(({ label: what, steps }) => `${plural(steps.length, "step")} with ${what}`),
    lines.gaps.length ? plural(lines.gaps.length, "gap") : "",
  ]
    .filter(Boolean)
    .join(". ");
  return (
    <svg class="ticks" viewBox={`0 0 ${bucketCount} 12`} preserveAspectRatio="none" role="img" aria-label={label}>
      <path class="runs" d={runs} />
      {paths.map(({ kind, path }) => (
        <path key={kind} class={`shown mark-${kind}`} d={path} />
      ))}
      {lines.gaps.map((gap) => (
        <path key={gap.first} class="cut" d={`M${across(gap.first)} 0V12`} />
      ))}
    </svg>
  );
}
