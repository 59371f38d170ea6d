import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ShownCode } from "./editor";

// LineMark marks a line of code: the program failed at this line, or called the function that failed.
export interface LineMark {
  line: number;
  isFailure: boolean;
  code?: string;
  message?: string;
  hint?: string;
  variables?: Record<string, string>;
}

// Code shows Python. Until the editor is loaded, or if it cannot be, it shows the plain text. current is the line at
// which a recorded program stands, picked the line that a person chose with onLine by its number.
export function Code({
  code,
  marks,
  label,
  current,
  picked,
  onLine,
  onName,
  values,
}: {
  code: string;
  marks: LineMark[];
  label: string;
  current?: number;
  picked?: number;
  onLine?: (line: number) => void;
  onName?: ((name: string, line: number) => void) | undefined; // a name in the code was clicked
  values?: Map<number, string>; // of variables, by the line behind which they are shown
}) {
  const place = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState<ShownCode>();
  const key = JSON.stringify(marks);
  const clicked = useRef(onLine);
  clicked.current = onLine;
  const named = useRef(onName);
  named.current = onName;
  const asksNames = onName !== undefined;
  useEffect(() => {
    let mine: ShownCode | undefined;
    let gone = false;
    import("./editor").then(
      ({ showCode }) => {
        if (gone || !place.current) return;
        mine = showCode(place.current, code, marks, label, {
          onLine: onLine && ((line) => clicked.current?.(line)),
          onName: asksNames ? (name, line) => named.current?.(name, line) : undefined,
        });
        setShown(mine);
      },
      () => {},
    ); // the plain text stays
    return () => {
      gone = true;
      mine?.remove();
    };
  }, [code, key, label, asksNames]);
  useLayoutEffect(() => {
    // in the same picture as the number of the step
    if (current !== undefined) shown?.moveTo(current);
  }, [shown, current]);
  useLayoutEffect(() => {
    if (values) shown?.setValues(values);
  }, [shown, values]);
  useEffect(() => {
    if (picked !== undefined) shown?.pick(picked);
  }, [shown, picked]);
  return (
    <>
      {!shown && <pre class="text plain-code">{code}</pre>}
      <div ref={place} class="editor" />
    </>
  );
}
