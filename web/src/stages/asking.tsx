import type { Problem } from "../api/problem";
import { refusalOf } from "./words";

// What the page shows while a question about a statement runs, and if it has no answer.

export function Asking({ what, stop }: { what: string; stop: () => void }) {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> {what}… <button onClick={stop}>Stop</button>
    </p>
  );
}

export function Stopped({ again }: { again: () => void }) {
  return (
    <p class="stages-note" role="status">
      Stopped, and cancelled in the database. <button onClick={again}>Ask again</button>
    </p>
  );
}

export function Unanswered({ problem, again }: { problem: Problem; again: () => void }) {
  const { title, detail, isFinal } = refusalOf(problem);
  return (
    <div class={isFinal ? "notice warn" : "notice danger"} role="alert">
      <strong>{title}</strong>
      {detail && <p>{detail}</p>}
      {!isFinal && <button onClick={again}>Try again</button>}
    </div>
  );
}
