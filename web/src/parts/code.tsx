import { useEffect, useRef, useState } from "preact/hooks";

// LineMark is what is to be seen at a line: that the program failed there, or called the function that failed.
export interface LineMark {
  line: number;
  isFailure: boolean;
  code?: string;
  message?: string;
  hint?: string;
  variables?: Record<string, string>;
}

// Code shows Python. Until the editor is loaded, or if it cannot be, it shows the plain text.
export function Code({ code, marks, label }: { code: string; marks: LineMark[]; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [isDrawn, setDrawn] = useState(false);
  const key = JSON.stringify(marks);
  useEffect(() => {
    let remove: (() => void) | undefined;
    let gone = false;
    import("./editor").then(({ showCode }) => {
      if (gone || !place.current) return;
      remove = showCode(place.current, code, marks, label);
      setDrawn(true);
    }, () => {}); // the plain text stays
    return () => {
      gone = true;
      remove?.();
    };
  }, [code, key, label]);
  return (
    <>
      {!isDrawn && <pre class="text plain-code">{code}</pre>}
      <div ref={place} class="editor" />
    </>
  );
}
