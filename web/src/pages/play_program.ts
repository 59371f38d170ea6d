import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { Problem } from "../api/problem";
import type { Execution } from "../api/records";
import { shortID } from "../format";
import { readDraft, writeDraft } from "../parts/draft";
import type { PythonEditor } from "../parts/python_editor";
import { parameter, setParameters } from "../router";

// Program is what the person writes: the code in the editor, and the context, a JSON object.
export interface Program {
  editor: { current: PythonEditor | undefined };
  setEditor: (made: PythonEditor | undefined) => void; // when the editor is loaded or removed
  setCode: (code: string) => void;
  context: string;
  setContext: (text: string) => void;
}

export function useProgram(): Program {
  const editor = useRef<PythonEditor | undefined>(undefined);
  const waiting = useRef<string | undefined>(undefined); // code for the editor when it is loaded
  const [context, setContext] = useState(() => readDraft("play-context"));
  return {
    editor,
    setEditor: (made) => {
      editor.current = made;
      if (waiting.current !== undefined) made?.setCode(waiting.current);
      waiting.current = undefined;
    },
    setCode: (code) => {
      if (editor.current) editor.current.setCode(code);
      else waiting.current = code;
    },
    context,
    setContext: (text) => {
      setContext(text);
      writeDraft("play-context", text);
    },
  };
}

// useAddressedExecution loads the program of the execution that the address names.
export function useAddressedExecution(
  program: Program,
  say: (note: string) => void,
  fail: (problem: Problem) => void,
): void {
  const execution = parameter("execution");
  useEffect(() => {
    if (!execution) return;
    const request = new AbortController();
    get<Execution>(`/executions/${encodeURIComponent(execution)}`, {}, request.signal).then(
      (record) => {
        program.setCode(record.code ?? "");
        const has = record.context && Object.keys(record.context).length > 0;
        program.setContext(has ? JSON.stringify(record.context, null, 2) : "");
        say(
          record.code ? `The editor has the code of execution ${shortID(execution)}.` : "This execution has no code.",
        );
        setParameters({ execution: "" }, true); // a reload keeps what one changes
      },
      (thrown: unknown) => {
        if (!request.signal.aborted) fail(Problem.from(thrown));
      },
    );
    return () => request.abort();
  }, [execution]);
}

// parseContext returns the values of a context, or undefined for an empty text. It throws for anything but a JSON
// object.
export function parseContext(text: string): Record<string, unknown> | undefined {
  if (!text.trim()) return undefined;
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error('expected an object such as {"limit": 5}');
  return value as Record<string, unknown>;
}
