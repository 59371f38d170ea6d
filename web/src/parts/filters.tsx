import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { fullTime, own, shortID, zone } from "../format";
import { parameter, setParameters } from "../router";

// The controls of filters, whose values are in the query of the address.

const ranges: Record<string, [label: string, minutes: number]> = {
  "15m": ["Last 15 minutes", 15],
  "1h": ["Last hour", 60],
  "24h": ["Last 24 hours", 24 * 60],
  "7d": ["Last 7 days", 7 * 24 * 60],
};

// timeNames are the parameters of TimeChoice: either range, such as 1h, or since and until.
export const timeNames = ["range", "since", "until"];

// timeQuery returns the chosen time for a query of the API. A range is relative to now.
export function timeQuery(): { since: string; until: string } {
  const range = own(ranges, parameter("range"));
  return {
    since: range ? new Date(Date.now() - range[1] * 60_000).toISOString() : parameter("since"),
    until: parameter("until"),
  };
}

// workQuery returns what the service leaves out: replays and explanations, unless the address asks for them.
export function workQuery(): { work: string } {
  return { work: parameter("replays") || parameter("execution") || parameter("sandbox") ? "" : "true" };
}

// ReplayChoice shows what people ran to look at the work of others.
export function ReplayChoice() {
  return (
    <Choice
      name="replays"
      label="Replays and looks"
      any="Without replays and looks"
      values={["shown"]}
      texts={{ shown: "With replays and looks" }}
    />
  );
}

export function isFiltered(names: string[]): boolean {
  return names.some((name) => parameter(name) !== "");
}

export function clearFilters(names: string[]): void {
  setParameters(Object.fromEntries(names.map((name) => [name, ""])));
}

// Filters holds the controls, and below them a chip for each filter that is set.
// texts has what the chips show instead of a value, if it is not "".
export function Filters({
  label,
  names,
  texts = {},
  children,
}: {
  label: string;
  names: string[];
  texts?: Record<string, string>;
  children: ComponentChildren;
}) {
  return (
    <>
      <div class="filters" role="search" aria-label={label}>
        {children}
      </div>
      <Chips names={names} texts={texts} />
    </>
  );
}

function Chips({ names, texts }: { names: string[]; texts: Record<string, string> }) {
  const chips: [names: string[], label: string, value: string][] = [];
  for (const name of names) {
    const value = parameter(name);
    if (!value) continue;
    const shown = texts[name]
      ? texts[name]
      : name === "range"
        ? (own(ranges, value)?.[0].toLowerCase() ?? value)
        : name === "since" || name === "until"
          ? fullTime(value).replace(/\.\d+/, "")
          : ["sandbox", "execution", "fingerprint"].includes(name)
            ? shortID(value)
            : value;
    chips.push([[name], name === "range" ? "time" : name === "fingerprint" && texts[name] ? "shape" : name, shown]);
  }
  if (chips.length === 0) return null;
  return (
    <ul class="chips" aria-label="Filters that are set">
      {chips.map(([cleared, label, value]) => (
        <li key={label} class="chip">
          <span class="muted">{label}</span> {value}
          <button
            aria-label={`Remove the filter ${label} ${value}`}
            onClick={() => setParameters(Object.fromEntries(cleared.map((name) => [name, ""])))}
          >
            <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
      <li>
        <button class="link" onClick={() => clearFilters(names)}>
          Clear all
        </button>
      </li>
    </ul>
  );
}

function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is among the children
    <label class="field">
      <span class="visually-hidden">{label}</span>
      {children}
    </label>
  );
}

// Choice chooses one of the values, which are shown as they are unless texts has another text.
export function Choice(props: {
  name: string;
  label: string;
  any: string;
  values: string[];
  texts?: Record<string, string>;
  value?: string;
}) {
  const value = props.value ?? parameter(props.name);
  return (
    <Field label={props.label}>
      <select
        class={value ? "set" : ""}
        value={value}
        onChange={(event) => setParameters({ [props.name]: event.currentTarget.value })}
      >
        <option value="">{props.any}</option>
        {props.values.map((v) => (
          <option key={v} value={v}>
            {props.texts?.[v] ?? v}
          </option>
        ))}
      </select>
    </Field>
  );
}

// typingPause is the time without a key after which a text is taken, in milliseconds. Few people need longer between
// two letters, and a request that is no longer wanted is cancelled.
const typingPause = 150;

// TextFilter takes a text when one presses Enter, leaves the field, or has not typed for a moment. What one types
// between Enter and Enter is one step back in the browser's history.
export function TextFilter({
  name,
  label,
  placeholder,
  keys,
}: {
  name: string;
  label: string;
  placeholder: string;
  keys?: string;
}) {
  const value = parameter(name);
  const [typed, setTyped] = useState(value);
  const timer = useRef(0);
  const isTyping = useRef(false); // a part of the text is in the address
  const field = useRef<HTMLInputElement>(null);
  const applied = useRef(value);
  useEffect(() => {
    if (value === applied.current) return; // this field has set it, and one may have typed on
    applied.current = value;
    setTyped(value);
  }, [value]);
  useEffect(() => () => window.clearTimeout(timer.current), []);
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
  const apply = (text: string, isPart = false) => {
    window.clearTimeout(timer.current);
    const wanted = text.trim();
    if (wanted !== parameter(name)) {
      applied.current = wanted;
      setParameters({ [name]: wanted }, isTyping.current);
    }
    isTyping.current = isPart;
  };
  return (
    <Field label={label}>
      <input
        ref={field}
        type="search"
        class={value ? "set" : ""}
        placeholder={placeholder}
        value={typed}
        spellcheck={false}
        aria-keyshortcuts={keys}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setTyped(text);
          window.clearTimeout(timer.current);
          timer.current = window.setTimeout(() => apply(text, true), typingPause);
        }}
        onBlur={(event) => apply(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") apply(event.currentTarget.value);
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
    </Field>
  );
}

// TimeChoice chooses a time. unset is the range that the service takes if none is chosen; without it, any time.
export function TimeChoice({ unset = "" }: { unset?: string }) {
  const custom = parameter("since") !== "" || parameter("until") !== "";
  const [open, setOpen] = useState(custom);
  const value = open || custom ? "custom" : parameter("range") === unset ? "" : parameter("range");
  return (
    <>
      <Field label="Time">
        <select
          class={value ? "set" : ""}
          value={value}
          onChange={(event) => {
            const chosen = event.currentTarget.value;
            setOpen(chosen === "custom");
            if (chosen === "custom") setParameters({ range: "" });
            else setParameters({ range: chosen, since: "", until: "" });
          }}
        >
          <option value="">{ranges[unset]?.[0] ?? "Any time"}</option>
          {Object.entries(ranges)
            .filter(([v]) => v !== unset)
            .map(([v, [text]]) => (
              <option key={v} value={v}>
                {text}
              </option>
            ))}
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
  const local =
    at && !Number.isNaN(at.getTime())
      ? new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
      : "";
  return (
    <label class="field moment">
      <span>
        {label}, {zone()}
      </span>
      <input
        type="datetime-local"
        value={local}
        onChange={(event) => {
          const text = event.currentTarget.value;
          setParameters({ [name]: text ? new Date(text).toISOString() : "" });
        }}
      />
    </label>
  );
}
