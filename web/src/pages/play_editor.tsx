import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import { readDraft, writeDraft } from "../parts/draft";
import { Failure, Loading } from "../parts/feedback";
import type { CodeProblem, EditorOptions, Matches, PythonEditor } from "../parts/python_editor";
import type { Schema } from "../parts/sql";
import type { Session } from "./play_session";

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);
export const runKey = isApple ? "⌘ Enter" : "Ctrl+Enter";

// EditorCalls are what the editor asks the page to do.
export type EditorCalls = Pick<EditorOptions, "complete" | "check" | "schema"> & { run: () => void };

export function Editor({
  latest,
  onChange,
}: {
  latest: { current: EditorCalls };
  onChange: (editor: PythonEditor | undefined) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [isReady, setReady] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let made: PythonEditor | undefined;
    let gone = false;
    setProblem(undefined);
    import("../parts/python_editor").then(
      ({ editPython }) => {
        if (gone || !place.current) return;
        made = editPython(place.current, {
          code: readDraft("play-code"),
          label: "Python code. Tab indents; press Escape, then Tab to leave.",
          onChange: (code) => writeDraft("play-code", code),
          onRun: () => latest.current.run(),
          complete: (code, cursor) => latest.current.complete(code, cursor),
          check: (code) => latest.current.check(code),
          schema: (database) => latest.current.schema(database),
        });
        setReady(true);
        onChange(made);
      },
      (thrown: unknown) => setProblem(Problem.from(thrown)),
    );
    return () => {
      gone = true;
      onChange(undefined);
      made?.remove();
    };
  }, [attempt]);
  return (
    <>
      {problem && <Failure problem={problem} retry={() => setAttempt(attempt + 1)} />}
      {!isReady && !problem && (
        <div class="body editor-loading">
          <Loading what="the editor" />
        </div>
      )}
      <div ref={place} class="editor code-editor" />
    </>
  );
}

// inspections returns what the editor asks the current session while one types. say gets why there is no answer.
export function inspections(current: ReadonlySignal<Session>, say: (note: string) => void): Omit<EditorCalls, "run"> {
  const check = async (code: string): Promise<CodeProblem[]> => {
    const { value: state } = current.value.state;
    if (state === "opening" || state === "ended" || current.value.isRunning || !code.trim()) return [];
    try {
      return (await current.value.inspect<{ problems?: CodeProblem[] }>("check", { code })).problems ?? [];
    } catch (thrown) {
      current.value.learn(Problem.from(thrown));
      return [];
    }
  };
  const complete = async (code: string, cursor: number): Promise<Matches | undefined> => {
    if (current.value.state.value === "ended") return undefined;
    if (current.value.isRunning) {
      say("Completion is not available while code runs.");
      return undefined;
    }
    try {
      const matches = await current.value.inspect<Matches>("complete", { code, cursor });
      say("");
      return matches;
    } catch (thrown) {
      const problem = Problem.from(thrown);
      if (!current.value.learn(problem)) say(`No completion: ${problem.message}`);
      return undefined;
    }
  };
  const schema = async (database: string): Promise<Schema | undefined> => {
    try {
      return await current.value.schema(database);
    } catch (thrown) {
      const problem = Problem.from(thrown);
      if (!current.value.learn(problem)) say(`No names of tables: ${problem.message}`);
      return undefined;
    }
  };
  return { check, complete, schema };
}

// useRunKey runs the code with a key from everywhere on the page. In the editor, its own keymap does.
export function useRunKey(latest: { current: EditorCalls }): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      latest.current.run();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
