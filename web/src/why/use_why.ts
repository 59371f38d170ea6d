import { useEffect, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Why } from "../api/records";
import { keepAnswer, keptAnswer } from "./kept";

// restDelay is the time in milliseconds for which a question stands before it is asked: who moves over the steps with the
// keys wants an answer where they stop.
const restDelay = 250;

export interface Asked {
  why: Why | undefined;
  problem: Problem | undefined;
  isLooking: boolean; // the run is run again
  look: () => void; // asks for the facts, too
}

// useWhy asks why a variable has its value at a step, or at the end of the run if the step is 0. Without "facts" it waits
// for look before it runs the code again. Without a path it asks nothing.
export function useWhy(path: string, name: string, step: number, facts: boolean): Asked {
  const [answer, setAnswer] = useState<{ about: string; why: Why }>();
  const [problem, setProblem] = useState<Problem>();
  const [isLooking, setLooking] = useState(false);
  const [wanted, setWanted] = useState("");
  const about = `${path} ${name}`;
  const question = `${about} ${step}`;
  const withFacts = facts || wanted === question;
  useEffect(() => {
    const request = new AbortController();
    const { signal } = request;
    setProblem(undefined);
    setLooking(false);
    const known = keptAnswer(question);
    if (!path) return;
    if (known) {
      setAnswer({ about, why: known });
      return;
    }
    const asked = { name, ...(step ? { step } : {}) };
    const fail = (thrown: unknown) => isAborted(thrown) || setProblem(Problem.from(thrown));
    const ask = async () => {
      setAnswer({ about, why: await get<Why>(`${path}/why`, { ...asked, facts: "false" }, signal) });
      if (!withFacts) return;
      setLooking(true);
      const whole = await get<Why>(`${path}/why`, asked, signal);
      keepAnswer(question, whole);
      setAnswer({ about, why: whole });
      setLooking(false);
    };
    const timer = window.setTimeout(
      () =>
        void ask()
          .catch(fail)
          .finally(() => !signal.aborted && setLooking(false)),
      step ? restDelay : 0,
    );
    return () => {
      request.abort();
      window.clearTimeout(timer);
    };
  }, [question, withFacts]);
  // The answer for another step stays until the new one is there, so that the page does not jump.
  const why = answer?.about === about && !problem ? answer.why : undefined;
  return { why, problem, isLooking, look: () => setWanted(question) };
}
