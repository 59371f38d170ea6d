import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Summary } from "../api/records";
import { count, duration, megabytes, shortID, titleOf } from "../format";
import { Status } from "../parts/label";
import { parameter, setParameters } from "../router";

// Column is a column of the list of executions besides the time, which has the link.
export interface Column {
  name: string; // and class of its cells
  label: string;
  width: string;
  order?: string; // of the API, by this column
  isOptional?: boolean; // it is not among the first choice
  cell: (e: Summary) => ComponentChildren;
}

const isOver = (e: Summary) => e.completed_at !== null;

const allColumns: Column[] = [
  { name: "user", label: "User", width: "104px", cell: (e) => e.user_id },
  { name: "kind", label: "Kind", width: "104px", cell: (e) => e.kind },
  { name: "session", label: "Session", width: "84px", isOptional: true, cell: (e) => shortID(e.sandbox_id) },
  {
    name: "tags",
    label: "Tags",
    width: "140px",
    isOptional: true,
    cell: (e) =>
      Object.entries(e.tags ?? {})
        .map(([name, value]) => `${name}:${value}`)
        .join(" "),
  },
  { name: "state", label: "Status", width: "86px", cell: (e) => <Status of={e.status} /> },
  { name: "code", label: "Title", width: "minmax(180px, 1fr)", cell: (e) => <Title of={e} /> },
  {
    name: "number",
    label: "Duration",
    width: "78px",
    order: "duration",
    cell: (e) => (isOver(e) ? duration(e.execution_time * 1000) : "running"),
  },
  { name: "number cpu", label: "CPU", width: "66px", cell: (e) => (isOver(e) ? duration(e.cpu_ms) : "–") },
  { name: "number queries", label: "Queries", width: "52px", cell: (e) => count(e.queries) },
  { name: "number rows", label: "Rows read", width: "78px", order: "rows", cell: (e) => count(e.rows_read) },
  { name: "number memory", label: "Memory", width: "64px", cell: (e) => (isOver(e) ? megabytes(e.memory_usage) : "–") },
];

// isCodeTitle reports whether the list calls a run by a line of its code, rather than by words: a title, or a comment.
export function isCodeTitle(e: Pick<Summary, "title" | "code">): boolean {
  const title = titleOf(e);
  return !e.title && title !== "" && (e.code ?? "").split("\n").some((line) => line.trim() === title);
}

function Title({ of: e }: { of: Summary }) {
  const title = titleOf(e) || "no code";
  return (
    <span class={e.error ? "run-title with-error" : "run-title"}>
      {isCodeTitle(e) ? <code>{title}</code> : <span class="name">{title}</span>}
      {e.error && <span class={e.status === "cancelled" ? "error muted" : "error"}>{e.error}</span>}
    </span>
  );
}

// titleOfCell returns what a cell shows on hover, because it may be cut.
export function titleOfCell(name: string, e: Summary): string | undefined {
  if (name === "user") return e.user_id;
  if (name === "session") return e.sandbox_id;
  return name === "code" ? (e.error ?? undefined) : undefined;
}

const storageKey = "glasshouse-execution-columns";
const firstChoice = allColumns.filter(({ isOptional }) => !isOptional).map(({ name }) => name);

// parseChoice returns the names of the columns of a stored choice, without those that there are no longer.
export function parseChoice(text: string | null): string[] {
  const known = text?.split(",").filter((name) => allColumns.some((column) => column.name === name)) ?? [];
  return known.length > 0 ? known : firstChoice;
}

function stored(): string | null {
  try {
    return window.localStorage.getItem(storageKey);
  } catch {
    return null; // the browser keeps nothing
  }
}

const chosen = signal(parseChoice(stored()));

// isChosen says that a person has another choice than the first one: then it does not depend on the width of the page.
export const isChosen = computed(() => chosen.value.join() !== firstChoice.join());
export const shownColumns = computed(() => allColumns.filter(({ name }) => chosen.value.includes(name)));

// template returns the widths of the columns for a grid.
export function template(columns: Column[]): string {
  return ["96px", ...columns.map(({ width }) => width)].join(" ");
}

function choose(name: string): void {
  const next = chosen.value.includes(name) ? chosen.value.filter((other) => other !== name) : [...chosen.value, name];
  chosen.value = allColumns.map((column) => column.name).filter((other) => next.includes(other));
  try {
    window.localStorage.setItem(storageKey, chosen.value.join());
  } catch {
    // the choice holds until the page is left
  }
}

// ColumnChoice chooses the columns. The title stays: without it a row says little.
export function ColumnChoice() {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="menu-of-columns" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="button">Columns</summary>
      <fieldset>
        <legend class="visually-hidden">Columns that the list shows</legend>
        {(isOpen ? allColumns : []).map(({ name, label }) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={chosen.value.includes(name)}
              disabled={name === "code"}
              onChange={() => choose(name)}
            />
            {label}
          </label>
        ))}
      </fieldset>
    </details>
  );
}

// Header has the names of the columns. A click on one with an order lists the largest numbers first, or the newest again.
export function Header({ columns }: { columns: Column[] }) {
  const order = parameter("order");
  return (
    <div role="rowgroup" class="header">
      <div role="row" aria-rowindex={1} class="row">
        <span role="columnheader" class="time">
          Time
        </span>
        {columns.map((column) => (
          <span
            key={column.name}
            role="columnheader"
            class={column.name}
            aria-sort={column.order && order === column.order ? "descending" : undefined}
          >
            {column.order ? (
              <button
                class="sort"
                title={order === column.order ? "Show the newest first" : "Show the largest first"}
                onClick={() => setParameters({ order: order === column.order ? "" : column.order! })}
              >
                {column.label}
                {order === column.order && " ↓"}
              </button>
            ) : (
              column.label
            )}
          </span>
        ))}
      </div>
    </div>
  );
}
