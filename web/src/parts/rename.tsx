import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { put } from "../api/client";
import { Problem } from "../api/problem";

// Rename is a button that changes a title in place. Enter keeps it, Escape does not.
export function Rename(props: { path: string; title: string; renamed: (title: string) => void }) {
  const [text, setText] = useState<string>(); // undefined: the field is not shown
  const [problem, setProblem] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const isOpen = text !== undefined;
  const wasOpen = useRef(false);
  useLayoutEffect(() => {
    if (isOpen) field.current?.select();
    else if (wasOpen.current) button.current?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  if (!isOpen)
    return (
      <button ref={button} class="link" onClick={() => setText(props.title)}>
        Rename
      </button>
    );
  const keep = async (event: Event) => {
    event.preventDefault();
    setProblem("");
    try {
      await put(props.path, { title: text });
      props.renamed(text.trim());
      setText(undefined);
    } catch (thrown) {
      setProblem(Problem.from(thrown).message);
    }
  };
  return (
    <form class="rename" onSubmit={keep}>
      <input
        ref={field}
        type="text"
        aria-label="Title"
        placeholder="Title"
        maxLength={200}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.stopPropagation();
          setText(undefined);
        }}
      />
      <button class="primary">Keep</button>
      {problem && (
        <span class="field-error" role="alert">
          {problem}
        </span>
      )}
    </form>
  );
}
