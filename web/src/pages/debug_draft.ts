import { type StateUpdater, useEffect, useState } from "preact/hooks";
import { get, post, remove } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { DebugSessionRecord, Execution } from "../api/records";
import { readDraft, writeDraft } from "../parts/draft";
import { parameter, setParameters } from "../router";
import type { DebugSession, RequestedBreakpoint } from "./debug_session";
import { marks } from "./execution_marks";

const example = `def double(n):
    return n * 2

total = 0
for i in range(4):
    total += double(i)
total
`;

export interface Draft {
  code: string;
  breakpoints: RequestedBreakpoint[];
}

function keptDraft(): Draft {
  try {
    const draft = JSON.parse(readDraft("debug")) as Draft;
    if (typeof draft.code === "string" && Array.isArray(draft.breakpoints)) return draft;
  } catch {
    // there is none
  }
  return { code: example, breakpoints: [] };
}

// DraftState is the program that the person writes, until a session runs it.
interface DraftState {
  draft: Draft;
  setDraft: (change: StateUpdater<Draft>) => void;
  loads: number; // counts the codes that did not come from the editor
  isLoading: boolean; // the code of the execution in the address is not there yet
  stopsAtEntry: boolean;
  setStopsAtEntry: (value: boolean) => void;
  start: () => Promise<void>; // begins a session
  isStarting: boolean;
  problem: Problem | undefined;
  failedLine: number; // of the execution in the address, 0: it did not fail in a line
}

// useDraft keeps the draft of this tab. If the address names an execution and no session, it is the code of that.
export function useDraft(session: DebugSession | undefined): DraftState {
  const [draft, setDraft] = useState(keptDraft);
  const [loads, setLoads] = useState(0);
  const [stopsAtEntry, setStopsAtEntry] = useState(true);
  const [isStarting, setStarting] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const execution = parameter("execution");
  const [failedLine, setFailedLine] = useState(0);
  const [context, setContext] = useState<{ execution: string; of: string; values: Record<string, unknown> }>();
  const isLoading = !session && execution !== "" && context?.execution !== execution;

  // The editor shows no other code until that of the execution is there: a breakpoint in it would be lost.
  useEffect(() => {
    if (session || !execution) return;
    const request = new AbortController();
    get<Execution>(`/executions/${encodeURIComponent(execution)}`, {}, request.signal).then(
      (record) => {
        setContext({ execution, of: record.code ?? "", values: record.context ?? {} });
        setLoads((before) => before + 1);
        // A run that failed is debugged to see what was there when it failed.
        const line = record.status === "failed" ? (marks(record).find((mark) => mark.isFailure)?.line ?? 0) : 0;
        setFailedLine(line);
        if (line > 0) setStopsAtEntry(false);
        setDraft((before) => {
          const kept = before.code === record.code ? before.breakpoints : [];
          const isSet = line === 0 || kept.some((b) => b.line === line);
          return { code: record.code ?? "", breakpoints: isSet ? kept : [...kept, { line }] };
        });
      },
      (thrown) => {
        if (isAborted(thrown)) return;
        setContext({ execution, of: "", values: {} });
        setProblem(Problem.from(thrown));
      },
    );
    return () => request.abort();
  }, [session, execution]);
  useEffect(() => writeDraft("debug", JSON.stringify(draft)), [draft]);

  const start = async () => {
    if (isStarting || isLoading) return;
    setStarting(true);
    setProblem(undefined);
    let fresh = ""; // the sandbox that this start created
    try {
      let sandbox = parameter("sandbox");
      if (!sandbox) sandbox = fresh = (await post<{ sandbox_id: string }>("/sandbox/create", {})).sandbox_id;
      const values = context?.of === draft.code ? context.values : {};
      const opened = await post<DebugSessionRecord>(`/sandbox/${encodeURIComponent(sandbox)}/debug/sessions?wait=0`, {
        code: draft.code,
        breakpoints: draft.breakpoints,
        stop_on_entry: stopsAtEntry,
        ...(Object.keys(values).length > 0 ? { context: values } : {}),
      });
      setParameters({ session: opened.session_id, execution: opened.execution_id, sandbox });
    } catch (thrown) {
      setProblem(Problem.from(thrown));
      if (fresh) void remove(`/sandbox/${encodeURIComponent(fresh)}`).catch(() => {}); // it ends unused in time, if not now
    }
    setStarting(false);
  };
  return { draft, setDraft, loads, isLoading, stopsAtEntry, setStopsAtEntry, start, isStarting, problem, failedLine };
}
