import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/problem";

// The states of a page without its content, and what answers to a person's actions.

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> Loading {what}…
    </p>
  );
}

export function Failure({ problem, retry }: { problem: Problem; retry?: (() => void) | undefined }) {
  return (
    <div class="notice danger" role="alert">
      <strong>{problem.title}</strong>
      {problem.detail && <p>{problem.detail}</p>}
      {/* What a key may not do, it may not do at the next attempt either. */}
      {retry && problem.status !== 403 && <button onClick={retry}>Try again</button>}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}

// TwoSteps is a button whose action happens at the second click, on another button that says what will happen. With
// ask, the second step has a text field of that name, which may stay empty.
export function TwoSteps(props: {
  label: string;
  confirm: string;
  danger?: boolean;
  ask?: string;
  maxLength?: number; // of the text
  disabled?: boolean;
  onAsk?: (isAsking: boolean) => void; // the second step is shown, or no longer
  action: (text: string) => Promise<void>;
}) {
  const [asking, setShown] = useState(false);
  const setAsking = (isAsking: boolean) => {
    setShown(isAsking);
    props.onAsk?.(isAsking);
  };
  const [running, setRunning] = useState(false);
  const [text, setText] = useState("");
  const confirm = useRef<HTMLButtonElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const first = useRef<HTMLButtonElement>(null);
  const wasAsking = useRef(false);
  useLayoutEffect(() => {
    // before the next key
    if (asking) (field.current ?? confirm.current)?.focus();
    else if (wasAsking.current) first.current?.focus();
    wasAsking.current = asking;
  }, [asking]);
  if (!asking) {
    return (
      <button
        ref={first}
        class={props.danger ? "danger" : ""}
        disabled={props.disabled}
        onClick={() => setAsking(true)}
      >
        {props.label}
      </button>
    );
  }
  const act = async () => {
    setRunning(true);
    try {
      await props.action(text);
    } finally {
      setRunning(false);
      setAsking(false);
    }
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys come from the controls in it
    <span class="two-steps" onKeyDown={(event) => event.key === "Escape" && setAsking(false)}>
      {props.ask && (
        <input
          ref={field}
          type="text"
          aria-label={props.ask}
          placeholder={props.ask}
          maxLength={props.maxLength}
          disabled={running}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && void act()}
        />
      )}
      <button ref={confirm} class={props.danger ? "danger solid" : "primary"} disabled={running} onClick={act}>
        {running ? "Working…" : props.confirm}
      </button>
      <button disabled={running} onClick={() => setAsking(false)}>
        Cancel
      </button>
    </span>
  );
}

// Copy is a button that puts a text on the clipboard.
export function Copy({ label, text }: { label: string; text: () => string }) {
  const [said, setSaid] = useState("");
  const copy = async () => {
    setSaid((await putOnClipboard(text())) ? "Copied" : "The browser does not allow copying");
    window.setTimeout(() => setSaid(""), 2000);
  };
  return (
    <button onClick={copy}>
      <span aria-live="polite">{said || label}</span>
    </button>
  );
}

// putOnClipboard reports whether the browser allows it.
export async function putOnClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyWithSelection(text);
  }
}

// copyWithSelection copies where the page is not served by HTTPS or from this machine, so that it has no clipboard.
function copyWithSelection(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  return copied;
}
