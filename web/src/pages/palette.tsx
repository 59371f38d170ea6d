import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { navigate } from "../router";
import { type Found, pages, search } from "./palette_sources";

const delay = 150; // milliseconds after the last key until the service is asked

// Dialog is a modal dialog, which Escape and a click next to it close.
function Dialog({ label, close, children }: { label: string; close: () => void; children: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => box.current?.showModal(), []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the key is Escape, which dialogs know
    <dialog
      ref={box}
      class="palette"
      aria-label={label}
      onClose={close}
      onClick={(event) => event.target === box.current && close()}
    >
      {children}
    </dialog>
  );
}

// useFound returns what is found for a text, in the order of the sources, and whether it is complete.
function useFound(text: string): { found: Found[]; isLooking: boolean } {
  const [answers, setAnswers] = useState<Found[]>([]);
  const [isLooking, setLooking] = useState(false);
  useEffect(() => {
    setAnswers([]);
    if (text.trim().length < 2) {
      setLooking(false);
      return;
    }
    const request = new AbortController();
    setLooking(true);
    const timer = window.setTimeout(() => {
      void search(text.trim(), request.signal, setAnswers).then(() => !request.signal.aborted && setLooking(false));
    }, delay);
    return () => {
      window.clearTimeout(timer);
      request.abort();
    };
  }, [text]);
  return { found: [...pages(text.trim()), ...answers], isLooking };
}

// Search is the search over runs, sessions, statements, tables, keys and pages.
export function Search({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const { found, isLooking } = useFound(text);
  const at = Math.min(active, found.length - 1);
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(
    () => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }),
    [at],
  );
  const open = (one: Found | undefined) => {
    if (!one) return;
    close();
    if (one.href.startsWith("/ui/")) navigate(one.href);
    else window.location.assign(one.href);
  };
  const press = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by) setActive(Math.max(0, Math.min(found.length - 1, at + by)));
    else if (event.key === "Enter") open(found[at]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label="Search everything" close={close}>
      <input
        type="text"
        role="combobox"
        aria-label="Search everything"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={at >= 0 ? `found-${at}` : undefined}
        placeholder="Search runs, sessions, statements, tables, keys and pages"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
        }}
        onKeyDown={press}
      />
      <div id="found" role="listbox" aria-label="Found" ref={list}>
        {found.map((one, n) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field
          <div
            key={`${one.href} ${one.title}`}
            id={`found-${n}`}
            role="option"
            tabIndex={-1}
            aria-selected={n === at}
            onClick={() => open(one)}
          >
            {one.group !== found[n - 1]?.group && <span class="group">{one.group}</span>}
            <span class="title">{one.title}</span>
            <span class="muted">{one.note}</span>
          </div>
        ))}
      </div>
      <p class="muted" role="status">
        {isLooking
          ? "Searching…"
          : found.length === 0
            ? "Nothing is found."
            : text.trim().length < 2
              ? "Type two characters or more."
              : "↑ ↓ choose, Enter opens, Escape closes."}
      </p>
    </Dialog>
  );
}

const keyGroups: [string, [string, string][]][] = [
  [
    "Everywhere",
    [
      ["Ctrl+K", "search everything"],
      ["?", "these keys"],
      ["/", "the search of a list"],
      ["Escape", "close, or back to the list"],
    ],
  ],
  [
    "Executions",
    [
      ["↓ or j, ↑ or k", "next and previous row"],
      ["Enter", "open the row"],
    ],
  ],
  [
    "Steps",
    [
      ["← →", "a step back and forward, with Shift ten"],
      ["Home End", "the first step and the end"],
      ["h", "mark the runs of the line"],
      ["n p", "its next and previous run"],
    ],
  ],
  [
    "Playground and debugger",
    [
      ["Ctrl+Enter", "run"],
      ["F5 F10 F11", "continue, step over, step into"],
      ["F9", "breakpoint"],
    ],
  ],
];

// Keys lists the keys of the pages.
export function Keys({ close }: { close: () => void }) {
  return (
    <Dialog label="Keys" close={close}>
      <h2>Keys</h2>
      <div class="keys-of-pages">
        {keyGroups.map(([group, list]) => (
          <section key={group} aria-label={group}>
            <h3>{group}</h3>
            <dl>
              {list.map(([key, what]) => (
                <>
                  <dt key={key}>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{what}</dd>
                </>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <button onClick={close}>Close</button>
    </Dialog>
  );
}
