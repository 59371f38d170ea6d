import { useEffect, useRef, useState } from "preact/hooks";
import type { Chat } from "../api/chat";
import { Problem } from "../api/problem";
import type { UploadedFile } from "../api/upload";
import { bytes, count, plural } from "../format";

// Input is where one writes a message. Enter sends it, Shift+Enter begins a line.
export function Input(props: {
  chat: Chat;
  files: UploadedFile[];
  answering: boolean;
  focused: boolean; // from the beginning
  send: (text: string) => Promise<void>;
  stop: () => Promise<void>;
  upload: (files: File[], onProgress: (sent: number) => void) => Promise<void>;
}) {
  const { chat, answering } = props;
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState("");
  const [progress, setProgress] = useState<{ sent: number; total: number }>(); // bytes of an upload
  const [isOver, setOver] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (props.focused) field.current?.focus();
  }, []);
  const length = [...text].length;
  const isLong = length > chat.max_input_chars;
  const maySend = text.trim() !== "" && !isLong && !answering && !busy;

  const attempt = async (what: string, action: () => Promise<unknown>) => {
    setBusy(what);
    setProblem(undefined);
    try {
      await action();
      return true;
    } catch (thrown) {
      setProblem(Problem.from(thrown));
      return false;
    } finally {
      setBusy("");
      setProgress(undefined);
    }
  };
  const send = async () => {
    if (!maySend) return;
    if (await attempt("Sending…", () => props.send(text))) setText("");
    field.current?.focus();
  };
  const take = (list: FileList | null | undefined) => {
    const files = [...(list ?? [])];
    const total = files.reduce((sum, file) => sum + file.size, 0);
    if (files.length > 0 && !busy && !answering) {
      void attempt(`Uploading ${plural(files.length, "file")}…`, () =>
        props.upload(files, (sent) => setProgress({ sent, total })),
      );
    }
  };
  return (
    <form
      class={isOver ? "composer over" : "composer"}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      {problem && (
        <p class="field-error" role="alert">
          {problem.message}
        </p>
      )}
      {props.files.length > 0 && (
        <p class="muted uploads">
          Files in <code>/data</code>: {props.files.map((file) => `${file.path} (${bytes(file.size)})`).join(", ")}
        </p>
      )}
      <label class="visually-hidden" for="message">
        Message
      </label>
      <textarea
        id="message"
        ref={field}
        rows={3}
        value={text}
        placeholder="Ask something about the data. Enter sends, Shift+Enter begins a new line."
        aria-describedby="destination"
        aria-invalid={isLong}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          void send();
        }}
      />
      <div class="composer-row">
        <button type="button" disabled={busy !== "" || answering} onClick={() => chooser.current?.click()}>
          Upload files
        </button>
        <input
          ref={chooser}
          type="file"
          multiple
          class="visually-hidden"
          tabIndex={-1}
          aria-label="Files to upload"
          onChange={(event) => {
            take(event.currentTarget.files);
            event.currentTarget.value = "";
          }}
        />
        <span class="muted" role="status">
          {busy}
        </span>
        {progress && <progress aria-label="Upload" max={progress.total || 1} value={progress.sent} />}
        {length > chat.max_input_chars * 0.8 && (
          <span class={isLong ? "field-error" : "muted"}>
            {count(length)} of {count(chat.max_input_chars)} characters
          </span>
        )}
        <span class="grow" />
        {answering ? (
          <button
            type="button"
            class="danger"
            onClick={() => void attempt("Stopping…", props.stop).then(() => field.current?.focus())}
          >
            Stop
          </button>
        ) : (
          <button type="submit" class="primary" disabled={!maySend}>
            Send
          </button>
        )}
      </div>
      <p id="destination" class="muted destination">
        Questions, code, its results and rows of the database go to <strong>{chat.host}</strong> (model {chat.model}).
      </p>
    </form>
  );
}
