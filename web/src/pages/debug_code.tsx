import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import type { DebugEditor } from "../parts/debug_editor";
import { Failure } from "../parts/feedback";
import type { Draft } from "./debug_draft";
import type { RequestedBreakpoint } from "./debug_session";

// Editor shows code with its breakpoints and the line at which the program stands. A draft can be edited.
export function Editor(props: {
  editor: { current: DebugEditor | undefined };
  code: string;
  source: string; // of the code: the editor takes the code when its source changes, and not each edit back
  isEditable: boolean;
  breakpoints: RequestedBreakpoint[];
  line: number;
  onToggle: (line: number) => void;
  onDraft: (change: (draft: Draft) => Draft) => void;
}) {
  const { editor, code, source, isEditable, breakpoints, line } = props;
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const [ready, setReady] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let mine: DebugEditor | undefined;
    let gone = false;
    setProblem(undefined);
    import("../parts/debug_editor").then(
      ({ showDebugEditor }) => {
        if (gone || !place.current) return;
        mine = editor.current = showDebugEditor(place.current, latest.current.code, "Code", {
          onToggle: (at) => latest.current.onToggle(at),
          onCode: (text) => latest.current.isEditable && latest.current.onDraft((draft) => ({ ...draft, code: text })),
          onMove: (lines) =>
            latest.current.isEditable &&
            latest.current.onDraft((draft) => ({
              ...draft,
              breakpoints: draft.breakpoints
                .map((b) => ({ ...b, line: lines.get(b.line) ?? b.line }))
                .filter((b, index, all) => all.findIndex((other) => other.line === b.line) === index),
            })),
        });
        setReady(true);
      },
      (thrown: unknown) => setProblem(Problem.from(thrown)),
    );
    return () => {
      gone = true;
      mine?.remove();
      editor.current = undefined;
    };
  }, [attempt]);
  useEffect(() => editor.current?.setCode(code), [ready, source]);
  useEffect(() => editor.current?.setEditable(isEditable), [ready, isEditable]);
  useEffect(() => editor.current?.setBreakpoints(breakpoints), [ready, source, breakpoints]);
  useEffect(() => editor.current?.moveTo(isEditable ? 0 : line), [ready, source, isEditable, line]);
  return (
    <>
      {problem && <Failure problem={problem} retry={() => setAttempt(attempt + 1)} />}
      {!ready && <pre class="text plain-code">{code}</pre>}
      <div ref={place} class="editor" />
    </>
  );
}
