import { Fragment } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { VariableChange, Why } from "../api/records";
import { count, plural } from "../format";
import { Failure } from "../parts/feedback";
import { Panel } from "../parts/panel";
import { CellOrigin } from "./steps_cell";

// longValue is the length in characters from which on a value does not fit into a heading.
const longValue = 60;

const maxChanges = 100; // of one request

// Story tells when a variable changed, and why it has its value.
export function Story({
  path,
  name,
  step,
  go,
}: {
  path: string;
  name: string;
  step: number;
  go: (step: number) => void;
}) {
  const [changes, setChanges] = useState<VariableChange[]>();
  const [hasMore, setHasMore] = useState(false);
  const [why, setWhy] = useState<Why>();
  const [problem, setProblem] = useState<Problem>();
  const [isLooking, setLooking] = useState(false);
  const looking = useRef<AbortController>(undefined);
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
  useEffect(() => {
    const request = new AbortController();
    setWhy(undefined);
    setLooking(false);
    looking.current = request;
    // A variable that does not exist yet has no reason. A replay is asked for by a click: each is an execution.
    get<Why>(`${path}/why`, { name, step, facts: "false" }, request.signal).then(setWhy, () => {});
    return () => request.abort();
  }, [path, name, step]);
  const look = () => {
    const { signal } = looking.current!;
    setLooking(true);
    get<Why>(`${path}/why`, { name, step }, signal)
      .then(setWhy, (thrown) => !isAborted(thrown) && setProblem(Problem.from(thrown)))
      .finally(() => !signal.aborted && setLooking(false));
  };
  return (
    <>
      {problem && <Failure problem={problem} />}
      {why && (
        <Panel
          title={why.value.length > longValue ? `Why ${why.name} has this value` : `Why ${why.name} is ${why.value}`}
        >
          <ol class="story">
            {(why.findings ?? []).map((finding, index) => (
              <li key={`finding-${index}`}>
                <Jump to={finding.step} go={go} /> <span class="why">{finding.text}</span>
              </li>
            ))}
            {(why.steps ?? []).map((cause) => (
              <li key={`${cause.step} ${cause.name}`}>
                <Jump to={cause.step} go={go} /> <span class="muted">line {cause.line_number}</span>{" "}
                <code>{cause.line_code.trim()}</code> <Role of={cause} />
                {(cause.reads ?? []).length > 0 && (
                  <span class="muted">
                    , from{" "}
                    {cause.reads!.map((read, index) => (
                      <Fragment key={read.name}>
                        {index > 0 && ", "}
                        <code>
                          {read.name} = {read.value}
                        </code>
                      </Fragment>
                    ))}
                  </span>
                )}
                {cause.first_value && (
                  <span class="muted">
                    ; the line ran {cause.times} times and first set <code>{cause.first_value}</code>
                  </span>
                )}
              </li>
            ))}
          </ol>
          {why.replay_id ? (
            <Facts of={why} />
          ) : (
            <p class="body">
              <button disabled={isLooking} onClick={look}>
                {isLooking ? "Running again…" : "Look at the values of these lines (runs again)"}
              </button>
            </p>
          )}
          <CellOrigin path={path} name={name} />
          {(why.limits ?? []).map((limit) => (
            <p key={limit} class="body muted">
              {limit}
            </p>
          ))}
        </Panel>
      )}
      {changes && (
        <Panel
          title={`History of ${name}`}
          note={hasMore ? `the first ${plural(changes.length, "change")}` : plural(changes.length, "change")}
        >
          {changes.length === 0 && <p class="body muted">It did not change as a global variable.</p>}
          <ol class="story">
            {changes.map((change) => (
              <li key={change.seen_at} class={change.seen_at <= step ? "" : "muted"}>
                <Jump to={change.step || change.seen_at} go={go} /> <span class="muted">line {change.line_number}</span>{" "}
                <code>{change.line_code.trim()}</code> <span class="muted">set</span>{" "}
                <code>
                  {name} = {change.value}
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
      )}
    </>
  );
}

// Role says what the line of a step did. A condition sets no variable.
function Role({ of: { role, name, value } }: { of: NonNullable<Why["steps"]>[number] }) {
  if (role === "condition") return <span class="muted">decided what ran</span>;
  return (
    <>
      <span class="muted">{role}</span>
      {(name || value) && (
        <>
          {" "}
          <code>{name ? `${name} = ${value}` : value}</code>
        </>
      )}
    </>
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

const maxFacts = 12; // that the page shows; the answer has more

// Facts lists what the lines behind a value did, from a replay.
function Facts({ of: why }: { of: Why }) {
  const facts = (why.facts ?? []).filter((fact) => fact.score < 50).slice(0, maxFacts);
  return (
    <ul class="story" aria-label="What these lines did">
      {facts.map((fact) => (
        <li key={`${fact.line} ${fact.column} ${fact.kind}`}>
          <span class="muted">line {fact.line}</span> <code>{fact.code}</code> {fact.text}
        </li>
      ))}
      {(why.not_looked_at ?? []).map((what) => (
        <li key={what} class="muted">
          Not looked at: {what}
        </li>
      ))}
    </ul>
  );
}
