import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { StepVariable } from "../api/records";
import { Failure } from "../parts/feedback";
import { isTableType } from "../parts/table";
import type { DebugSession } from "./debug_session";
import { Contents } from "./steps_value";

interface TableVariable {
  scope: string;
  name: string;
}

// shownTable is the variable whose table is on the page. It stays there when the program moves.
export const shownTable = signal<TableVariable>();

const maxVariables = 1000; // the most that one request returns

// VariableTable shows the chosen DataFrame, Series or array as a table. The rows are those of the recording, which has
// the first ones of a large table; the tree of the variables has them all.
export function VariableTable({ session }: { session: DebugSession }) {
  const chosen = shownTable.value;
  const version = session.stop.value;
  const frame = session.frame.value;
  const step = session.position.value?.step;
  const path = `/executions/${encodeURIComponent(session.executionID)}`;
  const [found, setFound] = useState<{ variable: StepVariable; step: number; of: TableVariable }>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    if (!chosen || !step || session.frames.peek().length === 0) {
      setFound(undefined);
      return;
    }
    const request = new AbortController();
    const query = { frame: chosen.scope === "Globals" ? 0 : frame, count: maxVariables };
    get<{ variables: StepVariable[] | null }>(`${path}/steps/${step}/variables`, query, request.signal).then(
      (answer) => {
        const variable = answer.variables?.find((v) => v.name === chosen.name && v.ref && isTableType(v.type));
        setFound(variable && { variable, step, of: chosen });
        setProblem(undefined);
      },
      (thrown) => isAborted(thrown) || setProblem(Problem.from(thrown)),
    );
    return () => request.abort();
  }, [session, chosen, version, frame, step]);
  if (problem) return <Failure problem={problem} />;
  if (!found || found.of !== chosen) return null;
  const { name, ref, length } = found.variable;
  return <Contents path={path} step={found.step} name={name} reference={ref!} length={length} />;
}
