import { signal } from "@preact/signals";
import { ago, dateTime, fullTime, shortID, zone } from "../format";

const tones: Record<string, string> = {
  completed: "good",
  ok: "good",
  applied: "good",
  allowed: "good",
  active: "good",
  idle: "good",
  ready: "good",
  failed: "bad",
  refused: "bad",
  killed: "bad",
  rejected: "quiet",
  timeout: "warn",
  captured: "warn",
  pending: "warn",
  applying: "busy",
  unknown: "warn",
  running: "busy",
  open: "busy",
  busy: "busy",
};

// Status shows a status by a word; the colour only repeats it.
export function Status({ of }: { of: string }) {
  return (
    <span class={`status ${tones[of] ?? "quiet"}`}>
      <span class="dot" aria-hidden="true" />
      {of}
    </span>
  );
}

// Time shows a time of the API; the heading of its column has the zone.
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="muted">–</span>;
  return (
    <time dateTime={at} title={fullTime(at)}>
      {dateTime(at)}
    </time>
  );
}

// minute changes while the page is open, so that relative times go on.
const minute = signal(Date.now());
window.setInterval(() => (minute.value = Date.now()), 20_000);

// Ago shows how long ago a time of the API was, and the exact time on hover.
export function Ago({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="muted">–</span>;
  const now = Math.max(minute.value, Date.now());
  return (
    <time dateTime={at} title={fullTime(at)}>
      {ago(at, now)}
    </time>
  );
}

export function timeHeading(name = "Time"): string {
  return `${name} (${zone()})`;
}

export function ExecutionLink({ id }: { id: string }) {
  if (!id) return <span class="muted">–</span>;
  return (
    <a class="mono" href={`/ui/executions/${encodeURIComponent(id)}`} title={`Execution ${id}`}>
      {shortID(id)}
    </a>
  );
}

// sandboxAddress returns the address of the page of a sandbox.
export function sandboxAddress(id: string): string {
  return `/ui/sandboxes/${encodeURIComponent(id)}`;
}

export function SandboxLink({ id }: { id: string }) {
  return (
    <a class="mono" href={sandboxAddress(id)} title={`Sandbox ${id}`}>
      {shortID(id)}
    </a>
  );
}
