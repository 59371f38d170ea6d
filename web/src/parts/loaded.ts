import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";

// useLoaded loads an answer, and again when one of the values changes. The former answer of the same path stays
// meanwhile. With the path "" it loads nothing.
export function useLoaded<T>(
  path: string,
  values: unknown[] = [],
): { answer: T | undefined; problem: Problem | undefined; reload: () => void } {
  const [state, setState] = useState<{ path: string; answer?: T; problem?: Problem }>({ path });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!path) return;
    const request = new AbortController();
    get<T>(path, {}, request.signal).then(
      (answer) => setState({ path, answer }),
      (thrown: unknown) => {
        if (!isAborted(thrown))
          setState((before) => ({ ...(before.path === path ? before : {}), path, problem: Problem.from(thrown) }));
      },
    );
    return () => request.abort();
  }, [path, attempt, ...values]);
  const mine = state.path === path;
  return {
    answer: mine ? state.answer : undefined,
    problem: mine ? state.problem : undefined,
    reload: () => setAttempt(attempt + 1),
  };
}
