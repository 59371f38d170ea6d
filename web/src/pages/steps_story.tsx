import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { VariableChange } from "../api/records";
import { count, plural } from "../format";
import { Failure } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { clipped } from "../why/answer";
import type { Asked } from "../why/use_why";
import { WhyPanel } from "../why/why_panel";

const maxChanges = 100; // of one request
const maxValue = 80; // characters

// Answer says why a variable has its value, next to it. A click on a line goes to its step.
export function Answer(props: {
  asked: Asked;
  path: string;
  ms: number;
  go: (step: number) => void;
  close: () => void;
}) {
  const { go, ...rest } = props;
  return (
    <WhyPanel
      {...rest}
      jump={(step, text) => (
        <button class="link" title={`Go to step ${count(step)}`} onClick={() => go(step)}>
          {text}
        </button>
      )}
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
