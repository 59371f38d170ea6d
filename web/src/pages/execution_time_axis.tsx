import type { Execution } from "../api/records";
import { duration, milliseconds, plural } from "../format";

interface Bar {
  label: string;
  kind: "queue" | "start" | "run" | "statement" | "connection" | "log" | "output";
  begin: number; // milliseconds since the request was accepted
  length: number;
  note: string;
  isBad: boolean;
}

const maxBars = 60;

// bars returns what happened in a run, in the order in which it began.
export function bars(e: Execution, now: number): Bar[] {
  const accepted = milliseconds(e.created_at);
  const since = (text: string) => Math.max(0, milliseconds(text) - accepted);
  const total = (e.completed_at ? milliseconds(e.completed_at) : now) - accepted;
  const isBad = ["failed", "killed", "timeout"].includes(e.status);
  const all: Bar[] = [];
  const { queue_ms: queue = 0, start_ms: start = 0, wall_ms: wall } = e.usage;
  let begin = 0;
  const before = (label: string, kind: "queue" | "start", length: number, note: string) => {
    if (length >= 0.5) all.push({ label, kind, begin, length, note, isBad: false });
    begin += length;
  };
  if (queue + start > 0) {
    before("Queue", "queue", queue, "for a slot");
    before("Start", "start", start, "of the sandbox's process");
  } else if (e.completed_at && wall > 0) {
    // of an earlier version, or ended before its code began
    before("Waiting", "queue", Math.max(0, total - wall), "for a slot and for the start");
  }
  // A stop in the debugger is not in wall_ms: the run then reaches to its end. Otherwise what follows the run is the
  // collection of artifacts and the write of the record.
  const length = e.completed_at && wall > 0 && e.kind !== "debug" ? wall : Math.max(0, total - begin);
  all.push({ label: "Run", kind: "run", begin, length, note: e.completed_at ? "" : "still running", isBad });
  const after = total - begin - length;
  if (e.completed_at && after >= 0.5) {
    all.push({
      label: "End",
      kind: "start",
      begin: begin + length,
      length: after,
      note: "artifacts and record",
      isBad: false,
    });
  }
  const inner: Bar[] = [];
  for (const q of e.queries) {
    inner.push({
      label: q.query.replace(/\s+/g, " "),
      kind: "statement",
      begin: since(q.started_at),
      length: q.duration_ms,
      note: q.status === "ok" ? plural(q.rows, "row") : q.status,
      isBad: q.status === "refused" || q.status === "failed",
    });
  }
  for (const c of e.connections) {
    inner.push({
      label: `${c.host}:${c.port}`,
      kind: "connection",
      begin: since(c.started_at),
      length: c.duration_ms,
      note: c.status,
      isBad: c.status !== "allowed" && c.status !== "open",
    });
  }
  for (const log of e.debug_info.logs) {
    inner.push({
      label: log.message ?? "debug",
      kind: "log",
      begin: since(log.timestamp),
      length: 0,
      note: `line ${log.line}`,
      isBad: false,
    });
  }
  for (const o of e.outputs) {
    if (o.shown_at)
      inner.push({
        label: o.summary,
        kind: "output",
        begin: since(o.shown_at),
        length: 0,
        note: "output",
        isBad: false,
      });
  }
  inner.sort((a, b) => a.begin - b.begin);
  const end = all.at(-1)?.label === "End" ? all.splice(-1) : [];
  return [...all, ...inner, ...end];
}

// TimeAxis shows when the parts of a run happened, on one axis.
export function TimeAxis({ execution, now }: { execution: Execution; now: number }) {
  const all = bars(execution, now);
  const end = Math.max(1, ...all.map((bar) => bar.begin + bar.length));
  const percent = (ms: number) => `${Math.min(100, (ms / end) * 100)}%`;
  return (
    <section class="panel axis" aria-label="Time axis">
      <div class="scale" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((part) => (
          <span key={part} style={{ left: `${part * 100}%` }}>
            {duration(end * part)}
          </span>
        ))}
      </div>
      <ol tabIndex={0} aria-label="Parts of the run">
        {all.slice(0, maxBars).map((bar, index) => (
          <li key={index} class={bar.isBad ? `${bar.kind} bad` : bar.kind}>
            <span class="label" title={bar.label}>
              {bar.label}
            </span>
            <span class="track">
              <span class="bar" style={{ left: percent(bar.begin), width: percent(bar.length) }} />
            </span>
            <span class="note">
              {bar.kind === "log" || bar.kind === "output" ? `at ${duration(bar.begin)}` : duration(bar.length)}
              {bar.note && `, ${bar.note}`}
            </span>
          </li>
        ))}
      </ol>
      {all.length > maxBars && (
        <p class="muted body">{plural(all.length - maxBars, "more part")}; the lists below have all.</p>
      )}
    </section>
  );
}
