import type { ComponentChildren } from "preact";
import { bytes } from "../format";
import { Copy } from "./feedback";
import { terminalText } from "./terminal_text";

// Panel is one part of a page, with a heading.
export function Panel(props: {
  title: string;
  note?: string | undefined;
  danger?: boolean;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class={props.danger ? "panel danger" : "panel"}>
      <header>
        <h2>
          <span>{props.title}</span> {props.note && <span class="muted">{props.note}</span>}
        </h2>
        {props.actions}
      </header>
      {props.children}
    </section>
  );
}

// TextPanel shows a text as a terminal does, and how much of it is missing.
export function TextPanel({ title, text, cut }: { title: string; text: string; cut?: number | undefined }) {
  const shown = terminalText(text);
  const note = cut ? `${bytes(cut)} more were left out` : undefined;
  return (
    <Panel title={title} note={note} actions={<Copy label="Copy" text={() => shown} />}>
      <pre class="text" tabIndex={0} role="group" aria-label={title}>
        {shown}
      </pre>
    </Panel>
  );
}
