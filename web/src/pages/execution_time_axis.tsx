import type { Execution } from "../api/records";
import { duration, milliseconds, plural } from "../format";

interface Bar {
  label: string;
  kind: "queue" | "run" | "statement" | "connection" | "log";
  begin: number; // milliseconds since the request was accepted
  length: number;
  note: string;
  isBad: boolean;
}

const maxBars = 60;

// bars returns what happened in a run, in the order in which it began.
function bars(e: Execution, now: number): Bar[] {
  const accepted = milliseconds(e.created_at);
  const since = (text: string) => Math.max(0, milliseconds(text) - accepted);
  const total = (e.completed_at ? milliseconds(e.completed_at) : now) - accepted;
  const waited = e.completed_at && e.usage.wall_ms > 0 ? Math.max(0, total - e.usage.wall_ms) : 0;
  const all: Bar[] = [];
  if (waited >= 0.5) all.push({ label: "Waiting", kind: "queue", begin: 0, length: waited, note: "for a place and for the record on disk", isBad: false });
  all.push({ label: "Run", kind: "run", begin: waited, length: Math.max(0, total - waited), note: e.completed_at ? "" : "still running", isBad: ["failed", "killed", "timeout"].includes(e.status) });
  const inner: Bar[] = [];
  for (const q of e.queries) {
    inner.push({ label: q.query.replace(/\s+/g, " "), kind: "statement", begin: since(q.started_at), length: q.duration_ms,
      note: q.status === "ok" ? plural(q.rows, "row") : q.status, isBad: q.status === "refused" || q.status === "failed" });
  }
  for (const c of e.connections) {
    inner.push({ label: `${c.host}:${c.port}`, kind: "connection", begin: since(c.started_at), length: c.duration_ms, note: c.status,
      isBad: c.status !== "allowed" && c.status !== "open" });
  }
  for (const log of e.debug_info.logs) {
    inner.push({ label: log.message ?? "debug", kind: "log", begin: since(log.timestamp), length: 0, note: `line ${log.line}`, isBad: false });
  }
  inner.sort((a, b) => a.begin - b.begin);
  return [...all, ...inner];
}

// TimeAxis shows when the parts of a run happened, on one axis.
export function TimeAxis({ execution, now }: { execution: Execution; now: number }) {
  const all = bars(execution, now);
  const end = Math.max(1, ...all.map((bar) => bar.begin + bar.length));
  const percent = (ms: number) => `${Math.min(100, (ms / end) * 100)}%`;
  return (
    <section class="panel axis" aria-label="Time axis">
      <div class="scale" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((part) => <span key={part} style={{ left: `${part * 100}%` }}>{duration(end * part)}</span>)}
      </div>
      <ol>
        {all.slice(0, maxBars).map((bar, index) => (
          <li key={index} class={bar.isBad ? `${bar.kind} bad` : bar.kind}>
            <span class="label" title={bar.label}>{bar.label}</span>
            <span class="track">
              <span class="bar" style={{ left: percent(bar.begin), width: percent(bar.length) }} />
            </span>
            <span class="note">
              {bar.kind === "log" ? `at ${duration(bar.begin)}` : duration(bar.length)}{bar.note && `, ${bar.note}`}
            </span>
          </li>
        ))}
      </ol>
      {all.length > maxBars && <p class="muted body">{plural(all.length - maxBars, "more part")}; the lists below have all.</p>}
    </section>
  );
}
