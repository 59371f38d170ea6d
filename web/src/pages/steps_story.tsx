import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { VariableChange } from "../api/records";
import { count, plural } from "../format";
import { Failure } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { setParameters } from "../router";
import { clipped } from "../why/answer";
import { WhyPanel } from "../why/why_panel";
import type { Question } from "./steps_question";

const maxChanges = 100; // of one request
const maxValue = 80; // characters

// Answer says why a variable has its value, next to it. A click on a line goes to the step after it has run, and the
// question stays.
export function Answer(props: {
  question: Question;
  step: number;
  total: number;
  path: string;
  ms: number;
  go: (step: number) => void;
}) {
  const { question, step, total, path, ms, go } = props;
  const { at, isKept, asked, follow } = question;
  return (
    <WhyPanel
      asked={asked}
      path={path}
      ms={ms}
      jump={(line, text) => (
        <button class="link" title="Go to the step after this line has run" onClick={() => follow(line)}>
          {text}
        </button>
      )}
      close={() => setParameters({ name: "", asked: "" }, true)}
      note={
        isKept &&
        at !== step && (
          <>
            Asked at{" "}
            <button class="link" onClick={() => go(at)}>
              {at > total ? "the end of the run" : `step ${count(at)}`}
            </button>
          </>
        )
      }
    />
  );
}

// History tells when a variable changed.
export function History(props: { path: string; name: string; step: number; go: (step: number) => void }) {
  const { path, name, step, go } = props;
  const [changes, setChanges] = useState<VariableChange[]>();
  const [hasMore, setHasMore] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const current = useRef<AbortController>(undefined);
  const load = (from: number, before: VariableChange[]) => {
    const { signal } = current.current!;
    get<{ changes: VariableChange[] | null }>(
      `${path}/variables/${encodeURIComponent(name)}/changes`,
      { from, limit: maxChanges },
      signal,
    ).then(
      (answer) => {
        const found = answer.changes ?? [];
        setChanges([...before, ...found]);
        setHasMore(found.length === maxChanges);
      },
      (thrown: unknown) => isAborted(thrown) || setProblem(Problem.from(thrown)),
    );
  };
  useEffect(() => {
    const request = new AbortController();
    current.current = request;
    setChanges(undefined);
    setProblem(undefined);
    load(1, []);
    return () => request.abort();
  }, [path, name]);
  if (problem) return <Failure problem={problem} />;
  if (!changes) return null;
  return (
    <Panel
      title={`History of ${name}`}
      note={hasMore ? `the first ${plural(changes.length, "change")}` : plural(changes.length, "change")}
    >
      {changes.length === 0 && <p class="body muted">It did not change as a global variable.</p>}
      <ol class="story" tabIndex={0} aria-label={`History of ${name}`}>
        {changes.map((change) => (
          <li key={change.seen_at} class={change.seen_at <= step ? "" : "muted"}>
            <Jump to={change.step || change.seen_at} go={go} /> <span class="muted">line {change.line_number}</span>{" "}
            <code title={change.value}>
              {name} = {clipped(change.value, maxValue)}
            </code>
            {change.step > 0 && change.seen_at !== change.step && (
              <span class="muted">
                , visible from <Jump to={change.seen_at} go={go} />
              </span>
            )}
          </li>
        ))}
      </ol>
      {hasMore && (
        <p class="body">
          <button onClick={() => load(changes.at(-1)!.seen_at + 1, changes)}>Show more changes</button>
        </p>
      )}
    </Panel>
  );
}

// Jump goes to a step.
export function Jump({ to, go }: { to: number; go: (step: number) => void }) {
  return (
    <button class="link" onClick={() => go(to)}>
      step {count(to)}
    </button>
  );
}
