import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Message, ToolCall } from "../api/chat";
import { address } from "../api/client";
import type { Execution } from "../api/records";
import { own } from "../format";
import { Code } from "../parts/code";
import { Loading } from "../parts/feedback";
import { Status } from "../parts/label";
import { useLoaded } from "../parts/loaded";
import { RowTable } from "../parts/table";
import { terminalText } from "../parts/terminal_text";
import { Value } from "../parts/value";
import { Artifacts, Failed, Missing } from "./execution_details";
import { Outputs, resultPath } from "./execution_outputs";

// A call of a tool, with what it gave.

const titles: Record<string, string> = {
  run_python: "Python",
  query_database: "SQL",
  describe_database: "Tables of the database",
  get_execution: "An earlier run",
  explain_execution: "Explanation of a run",
  replay_execution: "Replay of a run",
  cancel_execution: "Cancel a run",
  session_files: "Files",
};

const collapsedLines = 16;

function argumentsOf(call: ToolCall): Record<string, unknown> {
  try {
    const parsed = JSON.parse(call.arguments || "{}") as unknown;
    if (typeof parsed === "object" && parsed !== null) return parsed as Record<string, unknown>;
  } catch {
    // the model wrote no JSON: it is shown as it is
  }
  return {};
}

// Source shows what the model wrote into a call. Long code is closed at first.
function Source({ call }: { call: ToolCall }) {
  if (call.erased) return null;
  const given = argumentsOf(call);
  const code = typeof given["code"] === "string" ? given["code"] : "";
  const sql = typeof given["sql"] === "string" ? given["sql"] : "";
  const shown = code ? (
    <Code code={code} marks={[]} label="Code of the run" />
  ) : sql || (call.arguments && call.arguments !== "{}") ? (
    <pre class="text" tabIndex={0} role="group" aria-label="Arguments">
      {sql || call.arguments}
    </pre>
  ) : null;
  const lines = code.trimEnd().split("\n").length;
  if (lines <= collapsedLines) return shown;
  return <LongCode lines={lines}>{shown}</LongCode>;
}

function LongCode({ lines, children }: { lines: number; children: ComponentChildren }) {
  const [open, setOpen] = useState(false); // the editor is made when it is seen
  return (
    <details class="source" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Code, {lines} lines</summary>
      {open && children}
    </details>
  );
}

// rowsOf returns the rows in the answer of query_database, or undefined for another text.
export function rowsOf(text: string): { columns: string[]; rows: Record<string, unknown>[]; rest: string } | undefined {
  const [first = "", ...lines] = text.split("\n");
  if (!first.startsWith("columns: ")) return undefined;
  try {
    const columns = JSON.parse(first.slice("columns: ".length)) as string[];
    const rows = lines.filter((line) => line.startsWith("[")).map((line) => JSON.parse(line) as unknown[]);
    return {
      columns,
      rows: rows.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index]]))),
      rest: lines.filter((line) => !line.startsWith("[")).join(" "),
    };
  } catch {
    return undefined;
  }
}

function RunOutcome({ of: message }: { of: Message }) {
  // The end is on record a moment after the answer if the run was stopped.
  const { answer: run, problem } = useLoaded<Execution>(
    address(`/executions/${encodeURIComponent(message.execution_id ?? "")}`, { wait: 10 }),
  );
  if (problem)
    return (
      <pre class="text" tabIndex={0} role="group" aria-label="What the model read">
        {message.text}
      </pre>
    );
  if (!run) return <Loading what="the run" />;
  const hasResult = run.result !== null && !run.outputs.some((output) => output.role === "result");
  return (
    <>
      {run.stdout && (
        <pre class="text" tabIndex={0} role="group" aria-label="stdout">
          {terminalText(run.stdout)}
        </pre>
      )}
      {run.stderr && (
        <pre class="text stderr" tabIndex={0} role="group" aria-label="stderr">
          {terminalText(run.stderr)}
        </pre>
      )}
      {(run.exception || run.error) && (
        <div class="body">
          <Failed of={run} />
        </div>
      )}
      {hasResult && <Value of={run.result} label="Result" remote={resultPath(run)} />}
      <Outputs outputs={run.outputs} execution={run.execution_id} />
      {run.artifacts.length > 0 && <Artifacts of={run} />}
      <Missing of={run} />
    </>
  );
}

function Outcome({ of: message }: { of: Message }) {
  if (message.tool === "run_python" && message.execution_id && message.status !== "erased")
    return <RunOutcome of={message} />;
  const table = message.tool === "query_database" && message.status === "complete" ? rowsOf(message.text) : undefined;
  if (table) {
    return (
      <>
        {table.rows.length > 0 && <RowTable rows={table.rows} columns={table.columns} label="Rows" />}
        <p class="body muted">{table.rest}</p>
      </>
    );
  }
  if (message.status === "erased" || message.status === "cut")
    return <p class="body muted">{message.text || "The run was interrupted."}</p>;
  return (
    <pre class="text" tabIndex={0} role="group" aria-label="What the tool answered">
      {message.text}
    </pre>
  );
}

// Run shows a call, and the message of its tool as soon as there is one.
export function Run({
  call,
  number,
  message,
  output,
  isCut,
  answering,
}: {
  call: ToolCall;
  number: number; // of the call in the conversation
  message: Message | undefined;
  output: string; // while the code runs
  isCut: boolean; // the code has printed more
  answering: boolean;
}) {
  const runs = message?.status === "running" || (!message && answering);
  return (
    <section class="panel run" aria-label={`${own(titles, call.tool) ?? call.tool}, call ${number}`}>
      <header>
        <h2>
          <span>{own(titles, call.tool) ?? call.tool}</span>
          {runs && <Status of="running" />}
          {message?.status === "failed" && <Status of="failed" />}
          {(message?.status === "cut" || (!message && !answering)) && <Status of="stopped" />}
          {(message?.status === "erased" || call.erased) && <Status of="erased" />}
        </h2>
        {message?.execution_id && message.status !== "erased" && (
          <a href={`/ui/executions/${encodeURIComponent(message.execution_id)}`}>Record of this run</a>
        )}
      </header>
      <Source call={call} />
      {output && (
        <pre class="text" tabIndex={0} role="group" aria-label="Output">
          {terminalText(output)}
        </pre>
      )}
      {output && isCut && (
        <p class="cut">Truncated: the code prints more. All that is kept appears here when it has ended.</p>
      )}
      {message && message.status !== "running" && (
        <div class="outcome">
          <Outcome of={message} />
        </div>
      )}
    </section>
  );
}
