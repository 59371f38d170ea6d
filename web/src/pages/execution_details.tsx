import { type ComponentChildren, Fragment } from "preact";
import { useState } from "preact/hooks";
import { address } from "../api/client";
import type { Connection, Exception, Execution, Note, PendingWrite, Query, Replay } from "../api/records";
import {
  asText,
  bytes,
  changedRows,
  clock,
  count,
  duration,
  fullTime,
  hasHint,
  megabytes,
  plural,
  statementText,
  zone,
} from "../format";
import { SandboxLink, Status } from "../parts/label";
import { useLoaded } from "../parts/loaded";
import { Panel } from "../parts/panel";
import { mostSeconds, Stages, StatementRows } from "../parts/stages";
import { isAdmin } from "../session";
import { decisionOn, writeOf } from "./execution_writes";
import { annotationsOf } from "./executions_filter";
import { FailedTables } from "./failed_tables";

// The parts of an execution below its code.

// Failed shows why a run has failed, or that somebody has stopped it: isMine if it was the person who reads this.
export function Failed({ of: e, isMine = false }: { of: Execution; isMine?: boolean }) {
  if (e.status === "cancelled") {
    return (
      <div class="notice stopped">
        <strong>
          Stopped{isMine && " by you"} after {duration(e.execution_time * 1000)}.
        </strong>
        {e.exception && (
          <details>
            <summary>Where the code was</summary>
            <ExceptionPanel of={e.exception} />
          </details>
        )}
      </div>
    );
  }
  if (e.exception && e.status !== "timeout") {
    return (
      <ExceptionPanel of={e.exception}>
        <FailedTables of={e} />
      </ExceptionPanel>
    );
  }
  if (e.exception) {
    // the interruption: what matters is why, and where the code was
    return (
      <Panel title="Timeout" danger note={e.exception.line ? `line ${e.exception.line}` : undefined}>
        <div class="body">
          <pre class="message">{e.error}</pre>
          <Frames of={e.exception} />
        </div>
      </Panel>
    );
  }
  return e.error ? (
    <div class="notice danger">
      <strong>{e.error}</strong>
    </div>
  ) : null;
}

function ExceptionPanel({ of, children }: { of: Exception; children?: ComponentChildren }) {
  return (
    <Panel title={of.type} danger note={of.line ? `line ${of.line}` : undefined}>
      <div class="body">
        <pre class="message">{[of.message || of.type, ...(of.notes ?? [])].join("\n")}</pre>
        {of.hint && !hasHint(of.message, of.hint) && <p>{of.hint}</p>}
        {of.nearest && !of.hint?.includes(of.nearest) && (
          <p>
            Did the code mean <code>{of.nearest}</code>?
          </p>
        )}
        <Frames of={of} />
        {[...(of.chain ?? [])].reverse().map((earlier, index) => (
          <div key={index}>
            <p>
              Raised {earlier.is_cause ? "from" : "while handling"}{" "}
              <code>{[`${earlier.type}: ${earlier.message}`, ...(earlier.notes ?? [])].join("\n")}</code>
            </p>
            <Frames of={earlier} />
          </div>
        ))}
        {children}
      </div>
    </Panel>
  );
}

function Frames({ of }: { of: Exception }) {
  const frames = of.traceback ?? [];
  if (frames.length === 0) return null;
  return (
    <ol class="frames" aria-label="Calls, outermost first">
      {frames.map((frame, index) => (
        <li key={index}>
          <span class="muted">
            {frame.file ? `${frame.file}, ` : ""}line {frame.line}
            {frame.function ? `, ${frame.function}` : ""}
            {frame.column ? `, column ${frame.column}` : ""}
          </span>
          <code>{frame.code}</code>
        </li>
      ))}
    </ol>
  );
}

const textParts = ["stdout", "stderr", "result"];

// Missing says what a record does not keep of a run, because of the limits of its session.
export function Missing({ of: e }: { of: Execution }) {
  const parts = Object.entries(e.truncated)
    .filter(([, n]) => n > 0)
    .map(([name, n]) => (textParts.includes(name) ? `${bytes(n)} of ${name}` : `${count(n)} of the ${name}`));
  if (parts.length === 0) return null;
  return (
    <p class="cut">
      Truncated: {parts.join(", ")} {parts.length > 1 ? "are" : "is"} missing, beyond the limits of the session.
    </p>
  );
}

// Queries shows statements. With the execution, which has ended and keeps what it got, the rows of each can be shown.
export function Queries(props: {
  queries: Query[];
  cut?: number | undefined;
  execution: string;
  isKept: boolean; // the rows that they returned
}) {
  const { queries, cut, execution, isKept } = props;
  const [shown, setShown] = useState<number>();
  const [counted, setCounted] = useState<number>();
  return (
    <Panel title="Statements" note={count(queries.length) + (cut ? `, ${count(cut)} more were left out` : "")}>
      <div class="scroll-x" tabIndex={0} role="group" aria-label="Statements">
        <table class="statements">
          <thead>
            <tr>
              <th scope="col">Statement</th>
              <th scope="col">Outcome</th>
              <th scope="col" class="number">
                Rows
              </th>
              <th scope="col" class="number">
                Duration
              </th>
            </tr>
          </thead>
          <tbody>
            {queries.map((q, index) => (
              <Fragment key={index}>
                <tr>
                  <td class="sql">
                    {counted !== index && <pre>{statementText(q.query)}</pre>}
                    {q.parameters && Object.keys(q.parameters).length > 0 && (
                      <pre class="muted">{JSON.stringify(q.parameters)}</pre>
                    )}
                    {q.reason && <div class="why">rule: {q.reason}</div>}
                    {q.error && <div class="why">{q.error}</div>}
                    {q.computed_with_mask && (
                      <div class="why">
                        values were computed with "***" in place of one of the masked columns{" "}
                        {q.computed_with_mask.join(", ")}
                      </div>
                    )}
                    {q.rounded_columns && (
                      <div class="why">
                        values of the numeric columns {q.rounded_columns.join(", ")} lost digits as float64;
                        db_frame(..., exact=True) keeps them
                      </div>
                    )}
                    {execution && q.status === "ok" && (
                      <CountRows
                        of={q}
                        number={index + 1}
                        isShown={counted === index}
                        toggle={() => setCounted(counted === index ? undefined : index)}
                      />
                    )}
                    <StatementDetails of={q} />
                  </td>
                  <td>
                    <Status of={q.status} />
                    {q.status === "captured" && isAdmin.value && <Decision queries={queries} of={q} by={execution} />}
                  </td>
                  <td class="number">
                    {changedRows(q)}
                    {q.truncated && <div class="muted">truncated</div>}
                    {isKept && hasRows(q) && (
                      <button
                        class="link"
                        aria-expanded={shown === index}
                        onClick={() => setShown(shown === index ? undefined : index)}
                      >
                        {shown === index ? "Hide" : "Show"}
                        <span class="visually-hidden"> the rows of statement {index + 1}</span>
                      </button>
                    )}
                  </td>
                  <td class="number">{duration(q.duration_ms)}</td>
                </tr>
                {counted === index && (
                  <tr>
                    <td colSpan={4} class="statement-rows">
                      <Stages path={queryPath(execution, index + 1)} sql={q.query} label={`statement ${index + 1}`} />
                    </td>
                  </tr>
                )}
                {isKept && shown === index && (
                  <tr>
                    <td colSpan={4} class="statement-rows">
                      <StatementRows path={queryPath(execution, index + 1)} label={`Rows of statement ${index + 1}`} />
                    </td>
                  </tr>
                )}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

// hasRows reports whether a statement has returned rows.
export const hasRows = (q: Query) => q.status === "ok" && q.rows > 0;

// queryPath returns the path of a statement.
export function queryPath(execution: string, number: number): string {
  return `/executions/${encodeURIComponent(execution)}/queries/${number}`;
}

// CountRows is the button for the rows after each line of a statement. It says what they cost.
function CountRows(props: { of: Query; number: number; isShown: boolean; toggle: () => void }) {
  return (
    <p class="count-rows">
      <button aria-expanded={props.isShown} onClick={props.toggle}>
        {props.isShown ? "Hide the rows after each line" : "Rows after each line"}
        <span class="visually-hidden"> of statement {props.number}</span>
      </button>
      {!props.isShown && (
        <span class="muted">runs it again and counts, for at most {mostSeconds(props.of.duration_ms)} s</span>
      )}
    </p>
  );
}

function StatementDetails({ of: q }: { of: Query }) {
  return (
    <details>
      <summary>Details</summary>
      <dl>
        {q.database && (
          <>
            <dt>Database</dt>
            <dd>{q.database}</dd>
          </>
        )}
        <dt>Started</dt>
        <dd>
          <time dateTime={q.started_at}>{fullTime(q.started_at)}</time>
        </dd>
        <dt>Size of the rows</dt>
        <dd>{bytes(q.bytes)}</dd>
        {q.fingerprint && (
          <>
            <dt>Fingerprint</dt>
            <dd>
              <a class="mono" href={`/ui/statements?view=all&fingerprint=${encodeURIComponent(q.fingerprint)}`}>
                {q.fingerprint}
              </a>
            </dd>
          </>
        )}
      </dl>
    </details>
  );
}

export function Connections({ connections }: { connections: Connection[] }) {
  return (
    <Panel title="Connections" note={count(connections.length)}>
      <div class="scroll-x" tabIndex={0} role="group" aria-label="Connections">
        <table>
          <thead>
            <tr>
              <th scope="col">Started ({zone()})</th>
              <th scope="col">Host</th>
              <th scope="col">Address</th>
              <th scope="col">Outcome</th>
              <th scope="col" class="number">
                Sent
              </th>
              <th scope="col" class="number">
                Received
              </th>
              <th scope="col" class="number">
                Duration
              </th>
            </tr>
          </thead>
          <tbody>
            {connections.map((c, index) => (
              <tr key={index}>
                <td class="nowrap">
                  <time dateTime={c.started_at} title={fullTime(c.started_at)}>
                    {clock(new Date(c.started_at))}
                  </time>
                </td>
                <td class="mono">
                  {c.host}:{c.port}
                </td>
                <td class="mono">{c.address || "–"}</td>
                <td>
                  <Status of={c.status} />
                  {c.reason && <div class="why">{c.reason}</div>}
                </td>
                <td class="number">{bytes(c.bytes_sent)}</td>
                <td class="number">{bytes(c.bytes_received)}</td>
                <td class="number">{duration(c.duration_ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

const mostWrites = 1000; // that the service lists at once, newest first

// Decision says what became of a captured statement.
function Decision({ queries, of, by }: { queries: Query[]; of: Query; by: string }) {
  const { answer } = useLoaded<{ pending_writes: PendingWrite[] | null }>(
    address("/pending-writes", { limit: mostWrites }),
  );
  const number = queries.filter((q) => q.status === "captured").indexOf(of);
  const write = writeOf([...(answer?.pending_writes ?? [])], by, number);
  return (
    <div>
      <a href={address("/ui/writes", { status: write?.status })}>{write ? decisionOn(write) : "Pending writes"}</a>
    </div>
  );
}

export function Artifacts({ of: e }: { of: Execution }) {
  return (
    <Panel title="Artifacts" note={count(e.artifacts.length)}>
      <ul class="files">
        {e.artifacts.map((artifact) => (
          <li key={artifact.artifact_id}>
            <a href={artifact.url} download>
              {artifact.path}
            </a>
            <span class="muted">{artifact.mime_type}</span>
            <span class="muted">{bytes(artifact.size)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

export function Logs({ logs, variables }: { logs: Note[]; variables: Record<string, Note[]> }) {
  const all = [...logs, ...Object.values(variables).flat()].sort((a, b) => a.timestamp.localeCompare(b.timestamp));
  return (
    <Panel title="Debug log" note={`${count(all.length)}, times in ${zone()}`}>
      <ul class="logs">
        {all.map((note, index) => (
          <li key={index}>
            <time dateTime={note.timestamp} title={fullTime(note.timestamp)}>
              {clock(new Date(note.timestamp))}
            </time>
            <span class="muted">line {note.line}</span>
            <span>
              {note.message ?? note.name}
              {note.repr !== undefined && <code> = {note.repr}</code>}
              {note.data !== undefined && note.data !== null && <code> {asText(note.data)}</code>}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

// Facts shows the usage, the request and the isolation of a run.
const grades = {
  identical: "The same output, result, error, files and statements as the original.",
  differs: "Not all is as in the original.",
  diverged: "The code asked for something that the original had not asked for.",
};

// statementsNow names the statements of a replay that the databases of now answered.
function statementsNow(r: Replay): string {
  const numbers = r.statements_now ?? [];
  if (numbers.length === 0) return "some statements";
  return `the statement${numbers.length > 1 ? "s" : ""} ${numbers.join(", ")}`;
}

// Comparison says how a replay compares with its original.
export function Comparison({ of: r, by }: { of: Replay; by: string }) {
  const differences = r.differences ?? [];
  return (
    <Panel title="Replay" note={r.grade} danger={r.grade === "diverged"}>
      <div class="body">
        <p>
          {grades[r.grade]} <a href={`/ui/executions/${encodeURIComponent(r.of)}`}>The original</a>
          {r.rows === "now" && " had other rows: this run asked the databases again."}
          {r.edited && " had other code or rows."}{" "}
          <a href={`/ui/compare?a=${encodeURIComponent(r.of)}&b=${encodeURIComponent(by)}`}>Both side by side</a>
        </p>
        {r.rows === "mixed" && <p>The databases of now answered {statementsNow(r)} of this run.</p>}
        {(r.sources ?? []).length > 0 && <p class="muted">What may differ: {(r.sources ?? []).join(", ")}.</p>}
      </div>
      {differences.length > 0 && (
        <div class="scroll-x list" tabIndex={0} role="group" aria-label="Differences">
          <table>
            <thead>
              <tr>
                <th scope="col">Part</th>
                <th scope="col">Original</th>
                <th scope="col">Replay</th>
              </tr>
            </thead>
            <tbody>
              {differences.map((d) => (
                <tr key={d.part}>
                  <td>
                    {d.part}
                    {d.line ? `, line ${d.line}` : ""}
                  </td>
                  <td class="mono">{d.original}</td>
                  <td class="mono">{d.replay}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

export function Facts({ of: e }: { of: Execution }) {
  const { usage } = e;
  const isOver = e.completed_at !== null;
  const { queue_ms: queue = 0, start_ms: start = 0 } = usage;
  const limits = Object.entries(e.enforced_by);
  return (
    <aside class="facts" aria-label="Facts">
      <h2>Usage</h2>
      <dl>
        <dt>Wall time</dt>
        <dd>{isOver ? duration(usage.wall_ms) : "running"}</dd>
        {queue >= 0.01 ? (
          <>
            <dt>Queue</dt>
            <dd>{duration(queue)}</dd>
          </>
        ) : null}
        {start >= 0.01 ? (
          <>
            <dt>Start</dt>
            <dd>{duration(start)}</dd>
          </>
        ) : null}
        <dt>CPU time</dt>
        <dd>{isOver ? duration(usage.cpu_ms) : "known at the end"}</dd>
        <dt>Peak memory</dt>
        <dd>{isOver ? megabytes(usage.peak_memory_mb) : "known at the end"}</dd>
        <dt>Rows read</dt>
        <dd>
          {plural(
            e.queries.reduce((sum, q) => sum + (q.status === "captured" ? 0 : q.rows), 0),
            "row",
          )}
        </dd>
        {usage.network_sent_bytes || usage.network_received_bytes ? (
          <>
            <dt>Network</dt>
            <dd>
              {bytes(usage.network_sent_bytes ?? 0)} sent, {bytes(usage.network_received_bytes ?? 0)} received
            </dd>
          </>
        ) : null}
        {usage.ended_by && (
          <>
            <dt>Ended by</dt>
            <dd>
              <code>{usage.ended_by}</code>
            </dd>
          </>
        )}
      </dl>
      <h2>Request</h2>
      <dl>
        <dt>User</dt>
        <dd>
          <a href={`/ui/executions?user=${encodeURIComponent(e.user_id)}`}>{e.user_id}</a>
        </dd>
        <dt>Kind</dt>
        <dd>{e.kind}</dd>
        <dt>Sandbox</dt>
        <dd>
          <SandboxLink id={e.sandbox_id} />
        </dd>
        {annotationsOf(e).flatMap(({ label, text, query }) => [
          <dt key={`${label} label`}>{label}</dt>,
          <dd key={`${label} text`}>
            <a href={address("/ui/executions", query)}>{text || "(empty)"}</a>
          </dd>,
        ])}
        <dt>Accepted</dt>
        <dd>{fullTime(e.created_at)}</dd>
        {e.completed_at && (
          <>
            <dt>Ended</dt>
            <dd>{fullTime(e.completed_at)}</dd>
          </>
        )}
        <dt>Execution</dt>
        <dd class="mono">{e.execution_id}</dd>
      </dl>
      <h2>Isolation</h2>
      <dl>
        <dt>Level</dt>
        <dd>{e.isolation || (isOver ? "no code ran" : "known at the end")}</dd>
        {e.environment && (
          <>
            <dt>Environment</dt>
            <dd>
              {e.environment.name} <code title={e.environment.digest}>{e.environment.digest.slice(0, 12)}</code>
            </dd>
          </>
        )}
        {e.session_reset && (
          <>
            <dt>Session</dt>
            <dd>its variables were lost</dd>
          </>
        )}
      </dl>
      {limits.length > 0 && (
        <details>
          <summary>What enforces each limit</summary>
          <dl>
            {limits.map(([limit, by]) => (
              <>
                <dt key={limit}>
                  <code>{limit}</code>
                </dt>
                <dd>{by}</dd>
              </>
            ))}
          </dl>
        </details>
      )}
      {e.context && Object.keys(e.context).length > 0 && (
        <details>
          <summary>Context</summary>
          <pre>{asText(e.context)}</pre>
        </details>
      )}
    </aside>
  );
}
