import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Panel } from "../parts/panel";
import { RemoteTable } from "../parts/table";
import { terminalText } from "../parts/terminal_text";
import type { DebugSession } from "./debug_session";

// Console shows what the program printed, and evaluates expressions in the chosen frame.
export function Console({ session }: { session: DebugSession }) {
  const [expression, setExpression] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const asked = useRef<string[]>([]);
  const at = useRef(0);
  const lines = session.console.value;
  useLayoutEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!expression.trim()) return;
    asked.current = [...asked.current.slice(-99), expression];
    at.current = asked.current.length;
    void session.evaluate(expression);
    setExpression("");
  };
  const recall = (event: KeyboardEvent) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by || event.shiftKey) return;
    event.preventDefault();
    at.current = Math.max(0, Math.min(asked.current.length, at.current + by));
    setExpression(asked.current[at.current] ?? "");
  };
  const frame = session.frames.value.find((f) => f.id === session.frame.value);
  const table = session.table.value;
  const isRunning = session.position.value?.state === "running";
  return (
    <Panel title="Console" note="output of the program, and answers">
      <div class="console" ref={box} tabIndex={0} role="log" aria-label="Console">
        {lines.length === 0 && <p class="muted">Nothing was printed yet.</p>}
        {lines.map((line, index) => (
          <pre key={index} class={line.category}>
            {terminalText(line.text)}
          </pre>
        ))}
      </div>
      {table && table.step === session.position.value?.step && !isRunning && (
        <RemoteTable key={table.path} path={table.path} label={`Rows of ${table.expression}`} />
      )}
      <form class="debug-ask" onSubmit={submit}>
        <label class="grow">
          <span class="muted">{frame ? `Evaluate in ${frame.name}` : "Evaluate"}</span>
          <input
            class="mono"
            value={expression}
            spellcheck={false}
            autocomplete="off"
            disabled={isRunning}
            placeholder="len(rows)"
            onInput={(event) => setExpression(event.currentTarget.value)}
            onKeyDown={recall}
          />
        </label>
        <button disabled={isRunning}>Evaluate</button>
      </form>
    </Panel>
  );
}
