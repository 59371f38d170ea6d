import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { kinds, statuses, type Summary } from "../api/records";
import { fullTime, shortID, zone } from "../format";
import { parameter, setParameters } from "../router";
import { isAdmin } from "../session";

// The filters of the list are in the query of the address: user, status, kind, sandbox, text, and either range, such as
// 1h, or since and until.

const names = ["user", "status", "kind", "sandbox", "text", "range", "since", "until"] as const;

const ranges: Record<string, [label: string, minutes: number]> = {
  "15m": ["Last 15 minutes", 15],
  "1h": ["Last hour", 60],
  "24h": ["Last 24 hours", 24 * 60],
  "7d": ["Last 7 days", 7 * 24 * 60],
};

export interface Filter {
  query: Record<string, string>; // of the API
  // matches reports whether a new execution belongs into the list; undefined: the list is of the past, or only the
  // service can tell.
  matches: ((e: Summary) => boolean) | undefined;
}

// currentFilter reads the filter from the address. A range is relative to now.
export function currentFilter(): Filter {
  const query: Record<string, string> = {
    user_id: parameter("user"),
    status: parameter("status"),
    kind: parameter("kind"),
    sandbox_id: parameter("sandbox"),
    text: parameter("text"),
    since: parameter("since"),
    until: parameter("until"),
  };
  const range = ranges[parameter("range")];
  if (range) query["since"] = new Date(Date.now() - range[1] * 60_000).toISOString();
  const matches = query["text"] || query["until"]
    ? undefined
    : (e: Summary) =>
        (!query["user_id"] || e.user_id === query["user_id"]) &&
        (!query["status"] || e.status === query["status"]) &&
        (!query["kind"] || e.kind === query["kind"]) &&
        (!query["sandbox_id"] || e.sandbox_id === query["sandbox_id"]);
  return { query, matches };
}

export function isFiltered(): boolean {
  return names.some((name) => parameter(name) !== "");
}

// clearFilter shows all executions.
export function clearFilter(): void {
  setParameters(Object.fromEntries(names.map((name) => [name, ""])));
}

// FilterBar has the controls of the filters, and a chip for each that is set.
export function FilterBar() {
  return (
    <>
      <div class="filters" role="search" aria-label="Filter executions">
        <TextFilter name="text" label="Text in code or error" placeholder="Search code and errors" keys="/" />
        <Choice name="status" label="Status" any="Any status" values={statuses.map((s) => [s, s])} />
        <Choice name="kind" label="Kind" any="Any kind" values={kinds.map((k) => [k, k])} />
        <TimeChoice />
        {isAdmin.value && <TextFilter name="user" label="User" placeholder="User" />}
      </div>
      <Chips />
    </>
  );
}

function Chips() {
  const chips: [names: string[], label: string, value: string][] = [];
  for (const name of names) {
    const value = parameter(name);
    if (!value) continue;
    const shown = name === "range" ? (ranges[value]?.[0].toLowerCase() ?? value)
      : name === "since" || name === "until" ? fullTime(value).replace(/\.\d+/, "")
      : name === "sandbox" ? shortID(value) : value;
    chips.push([[name], name === "range" ? "time" : name, shown]);
  }
  if (chips.length === 0) return null;
  return (
    <ul class="chips" aria-label="Filters that are set">
      {chips.map(([cleared, label, value]) => (
        <li key={label} class="chip">
          <span class="muted">{label}</span> {value}
          <button aria-label={`Remove the filter ${label} ${value}`}
            onClick={() => setParameters(Object.fromEntries(cleared.map((name) => [name, ""])))}>
            <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
      <li><button class="link" onClick={clearFilter}>Clear all</button></li>
    </ul>
  );
}

function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span class="visually-hidden">{label}</span>
      {children}
    </label>
  );
}

function Choice({ name, label, any, values }: { name: string; label: string; any: string; values: [string, string][] }) {
  const value = parameter(name);
  return (
    <Field label={label}>
      <select class={value ? "set" : ""} value={value} onChange={(event) => setParameters({ [name]: event.currentTarget.value })}>
        <option value="">{any}</option>
        {values.map(([v, text]) => <option key={v} value={v}>{text}</option>)}
      </select>
    </Field>
  );
}

// TextFilter takes a text when one presses Enter, leaves the field, or has not typed for a moment.
function TextFilter({ name, label, placeholder, keys }: { name: string; label: string; placeholder: string; keys?: string }) {
  const value = parameter(name);
  const [typed, setTyped] = useState(value);
  const timer = useRef(0);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (!keys) return;
    const focus = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.key !== keys || event.ctrlKey || event.metaKey || target.matches("input, select, textarea")) return;
      event.preventDefault();
      field.current?.focus();
      field.current?.select();
    };
    document.addEventListener("keydown", focus);
    return () => document.removeEventListener("keydown", focus);
  }, [keys]);
  const apply = (text: string) => {
    window.clearTimeout(timer.current);
    if (text.trim() !== parameter(name)) setParameters({ [name]: text.trim() });
  };
  return (
    <Field label={label}>
      <input ref={field} type="search" class={value ? "set" : ""} placeholder={placeholder} value={typed} spellcheck={false}
        aria-keyshortcuts={keys}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setTyped(text);
          window.clearTimeout(timer.current);
          timer.current = window.setTimeout(() => apply(text), 400);
        }}
        onBlur={() => apply(typed)}
        onKeyDown={(event) => {
          if (event.key === "Enter") apply(typed);
          if (event.key === "Escape") event.currentTarget.blur();
        }} />
    </Field>
  );
}

function TimeChoice() {
  const custom = parameter("since") !== "" || parameter("until") !== "";
  const [open, setOpen] = useState(custom);
  const value = open || custom ? "custom" : parameter("range");
  return (
    <>
      <Field label="Time">
        <select class={value ? "set" : ""} value={value} onChange={(event) => {
          const chosen = event.currentTarget.value;
          setOpen(chosen === "custom");
          if (chosen === "custom") setParameters({ range: "" });
          else setParameters({ range: chosen, since: "", until: "" });
        }}>
          <option value="">Any time</option>
          {Object.entries(ranges).map(([v, [text]]) => <option key={v} value={v}>{text}</option>)}
          <option value="custom">From … to …</option>
        </select>
      </Field>
      {value === "custom" && <Moment name="since" label="From" />}
      {value === "custom" && <Moment name="until" label="To" />}
    </>
  );
}

// Moment is a point in time in the browser's zone.
function Moment({ name, label }: { name: string; label: string }) {
  const given = parameter(name);
  const at = given ? new Date(given) : undefined;
  const local = at && !isNaN(at.getTime()) ? new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16) : "";
  return (
    <label class="field moment">
      <span>{label}, {zone()}</span>
      <input type="datetime-local" value={local} onChange={(event) => {
        const text = event.currentTarget.value;
        setParameters({ [name]: text ? new Date(text).toISOString() : "" });
      }} />
    </label>
  );
}
