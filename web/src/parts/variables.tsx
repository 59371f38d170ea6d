import { useEffect, useState } from "preact/hooks";
import { plural } from "../format";
import { Failure, Loading } from "./feedback";
import { useLoaded } from "./loaded";
import { isTableType, RemoteTable } from "./table";

interface Variable {
  type: string;
  repr: string;
  shape?: number[];
}

// VariableList shows the variables of a live sandbox, whose routes begin with path. It reads them again when version changes.
export function VariableList({ path, isRunning, version }: { path: string; isRunning: boolean; version: number }) {
  const [opened, setAllOpened] = useState<ReadonlySet<string>>(new Set());
  const setOpened = (name: string, isOpen: boolean) => {
    const next = new Set(opened);
    if (isOpen) next.add(name);
    else next.delete(name);
    setAllOpened(next);
  };
  const { answer, problem, reload } = useLoaded<{ variables: Record<string, Variable>; total: number }>(
    isRunning ? "" : `${path}/variables`,
    [version],
  );
  // Completions and checks are inspections, too, and one is done at a time.
  const isBusy = problem?.status === 409;
  useEffect(() => {
    if (!isBusy) return;
    const timer = window.setTimeout(reload, 500);
    return () => window.clearTimeout(timer);
  }, [problem]);
  if (isRunning) return <p class="muted body">The variables are read when the code has ended.</p>;
  if (problem && !isBusy) return <Failure problem={problem} retry={reload} />;
  if (!answer) return <Loading what="the variables" />;
  const entries = Object.entries(answer.variables);
  if (entries.length === 0) return <p class="muted body">The session has no variables yet.</p>;
  return (
    <>
      <ul class="entries variables-list" aria-label="Variables">
        {entries.map(([name, { type, repr, shape }]) => (
          <li key={name}>
            <details onToggle={(event) => setOpened(name, event.currentTarget.open)}>
              <summary>
                <code class="name">{name}</code>{" "}
                <span class="muted">
                  {type}
                  {shape && ` ${shape.join(" × ")}`}
                </span>
                <code class="preview">{repr}</code>
              </summary>
              {isTableType(type) ? (
                opened.has(name) && (
                  <RemoteTable
                    key={version}
                    path={`${path}/variables/${encodeURIComponent(name)}/rows`}
                    label={`Rows of ${name}`}
                  />
                )
              ) : (
                <pre class="text" tabIndex={0} role="group" aria-label={`Value of ${name}`}>
                  {repr}
                </pre>
              )}
            </details>
          </li>
        ))}
      </ul>
      {answer.total > entries.length && (
        <p class="muted body">{plural(answer.total - entries.length, "more variable")}</p>
      )}
    </>
  );
}
