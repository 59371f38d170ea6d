import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { isAborted, Problem } from "../api/problem";
import type { Execution } from "../api/records";
import { parameter, setParameters } from "../router";
import { StepLines } from "./steps_lines";
import { type ShownStep, StepViews } from "./steps_views";

// addressDelay is the time after the last move at which the address gets the step, in milliseconds. Browsers limit how
// often an address may change, and the answers for one step only are loaded when the slider rests.
const addressDelay = 200;

// Recording is a recorded execution at one of its steps.
export interface Recording {
  path: string;
  record: Execution | undefined;
  lines: StepLines; // without any before they are loaded
  areLinesLoaded: boolean;
  total: number; // of the steps
  step: number;
  addressed: number; // the step in the address, at which the slider rests
  shown: ShownStep | undefined; // the values, which may be of another step than step
  missing: number; // the step that was wanted last and is not recorded, or 0
  isShown: boolean; // false: nothing is there yet
  problem: Problem | undefined;
  go: (to: number) => void;
  latestStep: () => number; // the step that all moves lead to; the page may still show an earlier one
}

// useRecording loads a recording, and moves through its steps.
export function useRecording(id: string): Recording {
  const path = `/executions/${encodeURIComponent(id)}`;
  const [record, setRecord] = useState<Execution>();
  const [loaded, setLoaded] = useState<StepLines>();
  const [shown, setShown] = useState<ShownStep>();
  const [missing, setMissing] = useState(0);
  const [problem, setProblem] = useState<Problem>();
  // A recording is opened at its end, or where the run failed: there is what one looks for.
  const last = !record ? 0 : record.status === "failed" ? record.recorded_steps : record.recorded_steps + 1;
  const addressed = Math.max(parameter("step") ? 1 : last, Math.floor(Number(parameter("step"))) || 0);
  const [step, setStep] = useState(addressed);
  const timer = useRef(0);
  const fail = (thrown: unknown) => {
    if (!isAborted(thrown)) setProblem(Problem.from(thrown));
  };
  const views = useMemo(
    () =>
      new StepViews(
        path,
        (at, found) => {
          setMissing(found ? 0 : at);
          if (found) setShown(found);
          setProblem(undefined);
        },
        fail,
      ),
    [path],
  );
  const total = loaded?.total ?? shown?.view.total_steps ?? 0;
  const lines = useMemo(() => loaded ?? StepLines.without(total), [loaded, total]);

  useEffect(() => {
    const request = new AbortController();
    get<Execution>(path, {}, request.signal).then(setRecord, fail);
    return () => {
      request.abort();
      window.clearTimeout(timer.current);
      views.stop();
    };
  }, [views]);
  // The lines of a long recording take the service a moment. The first values come before them.
  const isShown = shown !== undefined || missing > 0;
  useEffect(() => {
    if (!isShown) return;
    const request = new AbortController();
    StepLines.load(path, request.signal).then(setLoaded, fail);
    return () => request.abort();
  }, [path, isShown]);
  useEffect(() => {
    if (timer.current) return; // the person moves on
    setStep(addressed);
  }, [addressed]);
  useEffect(() => {
    if (step > 0) views.want(step);
  }, [views, step]);

  // Keys can come faster than the page is drawn.
  const at = useRef(step);
  at.current = step;
  const go = (to: number) => {
    const next = Math.max(1, Math.min(total + 1, to));
    if (next === at.current) return;
    at.current = next;
    setStep(next);
    views.want(next);
    window.clearTimeout(timer.current);
    const address = () => setParameters({ step: String(next), frame: "", after: "" }, true);
    if (!timer.current) address(); // a single move
    timer.current = window.setTimeout(() => {
      timer.current = 0;
      address();
    }, addressDelay);
  };
  return {
    path,
    record,
    lines,
    areLinesLoaded: loaded !== undefined,
    total,
    step,
    addressed,
    shown,
    missing,
    isShown,
    problem,
    go,
    latestStep: () => at.current,
  };
}
