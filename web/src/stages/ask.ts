import { useEffect, useRef, useState } from "preact/hooks";
import { send } from "../api/client";
import { isAborted, Problem } from "../api/problem";

interface Asked<T> {
  answer?: T;
  problem?: Problem;
  isRunning?: boolean;
  isStopped?: boolean;
}

// useAsk asks the service a question about a statement, which takes a while: the service cancels it when the reader
// stops it, asks anew or leaves.
export function useAsk<T>(path: string) {
  const [state, setState] = useState<Asked<T>>({});
  const request = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => request.current?.abort(), [path]);
  const ask = async (body: unknown) => {
    request.current?.abort();
    const mine = new AbortController();
    request.current = mine;
    setState(({ answer }) => ({ isRunning: true, ...(answer && { answer }) }));
    try {
      const answer = (await (await send("POST", path, { body, signal: mine.signal })).json()) as T;
      if (!mine.signal.aborted) setState({ answer });
    } catch (thrown) {
      if (!mine.signal.aborted && !isAborted(thrown)) setState({ problem: Problem.from(thrown) });
    }
  };
  const stop = () => {
    request.current?.abort();
    setState({ isStopped: true });
  };
  return { ...state, ask, stop };
}
