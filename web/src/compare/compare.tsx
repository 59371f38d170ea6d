import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Execution } from "../api/records";
import { bytes, duration, fullTime, megabytes, plural, shortID, titleOf } from "../format";
import { Empty, Failure, Loading } from "../parts/feedback";
import { Ago, Status } from "../parts/label";
import { Panel } from "../parts/panel";
import { parameter, setParameters } from "../router";
import { Page } from "../shell";
import { Results } from "./compare_results";
import { Statements } from "./compare_statements";
import { TextDiff } from "./compare_text";
import { change } from "./diff";

interface Difference {
  part: string;
  line?: number;
  original: string;
  replay: string;
}

// Pair is two runs that have ended, and what the service says about their differences.
export interface Pair {
  left: Execution;
  right: Execution;
  differences: Difference[];
}

const pathOf = (id: string) => `/executions/${encodeURIComponent(id)}`;

function usePair(a: string, b: string) {
  const [pair, setPair] = useState<Pair>();
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    setPair(undefined);
    setProblem(undefined);
    if (!a || !b) return;
    const request = new AbortController();
    Promise.all([
      get<Execution>(pathOf(a), {}, request.signal),
      get<Execution>(pathOf(b), {}, request.signal),
      get<{ differences: Difference[] }>(`${pathOf(a)}/diff/${encodeURIComponent(b)}`, {}, request.signal),
    ]).then(
      ([left, right, { differences }]) => setPair({ left, right, differences }),
      (thrown: unknown) => isAborted(thrown) || setProblem(Problem.from(thrown)),
    );
    return () => request.abort();
  }, [a, b, attempt]);
  return { pair, problem, retry: () => setAttempt(attempt + 1) };
}

// Compare shows two runs side by side: the one of the parameter a at the left.
export function Compare() {
  const [a, b] = [parameter("a"), parameter("b")];
  const { pair, problem, retry } = usePair(a, b);
  return (
    <Page
      title="Two runs side by side"
      intro="What differs in the code, the result, the tables by cell, the statements and the time."
      actions={<button onClick={() => setParameters({ a: b, b: a }, true)}>Swap the sides</button>}
    >
      {(!a || !b) && (
        <Empty title="Two runs are needed.">
          Choose them in the list of <a href="/ui/executions">executions</a>, with <em>Compare</em>.
        </Empty>
      )}
      {problem && <Failure problem={problem} retry={retry} />}
      {a && b && !pair && !problem && <Loading what="the runs" />}
      {pair && <Sides of={pair} />}
    </Page>
  );
}

function Sides({ of: pair }: { of: Pair }) {
  const { left, right } = pair;
  const notes = pair.differences.filter(({ part }) => /^(artifacts|debug_info|exception)/.test(part));
  return (
    <div class="compare">
      <div class="sides">
        <Head of={left} side="Left" />
        <Head of={right} side="Right" />
      </div>
      <Verdict of={pair} />
      <Results of={pair} />
      <TextDiff title="Error" left={left.error ?? ""} right={right.error ?? ""} />
      <TextDiff title="Code" left={left.code ?? ""} right={right.code ?? ""} isCode />
      <TextDiff title="stdout" left={left.stdout} right={right.stdout} />
      <TextDiff title="stderr" left={left.stderr} right={right.stderr} />
      <Statements left={left.queries} right={right.queries} />
      <Numbers left={left} right={right} />
      {notes.length > 0 && (
        <Panel title="Other differences">
          <ul class="body">
            {notes.map(({ part, original, replay }) => (
              <li key={part}>
                {part}: <code>{original || "(none)"}</code> and <code>{replay || "(none)"}</code>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </div>
  );
}

function Head({ of: e, side }: { of: Execution; side: string }) {
  return (
    <section class="compare-side" aria-label={`${side} run`}>
      <a href={`/ui${pathOf(e.execution_id)}`}>
        <strong>{titleOf(e) || shortID(e.execution_id)}</strong>
      </a>
      <p>
        <Status of={e.status} /> {duration(e.execution_time * 1000)}
        <span class="muted" title={fullTime(e.created_at)}>
          {" "}
          {e.kind} of {e.user_id}, <Ago at={e.created_at} />
        </span>
      </p>
    </section>
  );
}

const partNames: [RegExp, string][] = [
  [/^status/, "the status"],
  [/^(result|outputs)/, "the result and outputs"],
  [/^(stdout|stderr|debug_info)/, "what was printed"],
  [/^(error|exception)/, "the error"],
  [/^artifacts/, "the files"],
  [/^statements/, "the statements"],
];

// Verdict says in a sentence what differs.
function Verdict({ of: { left, right, differences } }: { of: Pair }) {
  const parts = partNames
    .filter(([pattern]) => differences.some(({ part }) => pattern.test(part)))
    .map(([, name]) => name);
  if ((left.code ?? "") !== (right.code ?? "")) parts.unshift("the code");
  if (parts.length === 0)
    return (
      <p class="notice">
        <strong>Nothing differs</strong> but the time: both have the same code, result, output, files and statements.
      </p>
    );
  return (
    <p class="notice warn">
      <strong>
        Different: {parts.slice(0, -1).join(", ")}
        {parts.length > 1 && " and "}
        {parts.at(-1)}
      </strong>
    </p>
  );
}

const rowsRead = (e: Execution) => e.queries.reduce((sum, q) => sum + (q.status === "captured" ? 0 : q.rows), 0);

// Numbers compares the time and what the runs used.
function Numbers({ left, right }: { left: Execution; right: Execution }) {
  const row = (name: string, from: number, to: number, text: (n: number) => ComponentChildren) => (
    <tr>
      <th scope="row">{name}</th>
      <td class="number">{text(from)}</td>
      <td class="number">{text(to)}</td>
      <td class="muted">{change(from, to)}</td>
    </tr>
  );
  const network = (e: Execution) => (e.usage.network_sent_bytes ?? 0) + (e.usage.network_received_bytes ?? 0);
  return (
    <Panel title="Time and usage">
      <div class="scroll-x" tabIndex={0} role="group" aria-label="Time and usage">
        <table>
          <thead>
            <tr>
              <th scope="col">Measure</th>
              <th scope="col" class="number">
                Left
              </th>
              <th scope="col" class="number">
                Right
              </th>
              <th scope="col">Change</th>
            </tr>
          </thead>
          <tbody>
            {row("Wall time", left.usage.wall_ms, right.usage.wall_ms, duration)}
            {row("CPU time", left.usage.cpu_ms, right.usage.cpu_ms, duration)}
            {row("Peak memory", left.usage.peak_memory_mb, right.usage.peak_memory_mb, megabytes)}
            {row("Rows read", rowsRead(left), rowsRead(right), (n) => plural(n, "row"))}
            {network(left) + network(right) > 0 && row("Network", network(left), network(right), bytes)}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}
