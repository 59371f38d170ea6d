import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { remove } from "../api/client";
import { Problem } from "../api/problem";
import { checkSize, type UploadList as Stored, upload as send, type UploadedFile, uploadPath } from "../api/upload";
import { bytes, own } from "../format";
import { ArtifactList } from "../parts/artifact_list";
import { Failure, TwoSteps } from "../parts/feedback";
import { useLoaded } from "../parts/loaded";
import { setParameters } from "../router";
import type { Session } from "./play_session";

interface Upload {
  name: string;
  size: number;
  sent: number;
  problem?: string;
}

// Uploads sends files to the session, one after the other.
export class Uploads {
  readonly list = signal<Upload[]>([]); // those that are not stored

  constructor(private readonly session: Session) {}

  async add(files: Iterable<File>): Promise<void> {
    for (const file of files) {
      const upload: Upload = { name: file.name, size: file.size, sent: 0 };
      this.list.value = [...this.list.value, upload];
      try {
        await this.session.ensure();
        const max = Math.min(
          this.session.limits.value?.upload_max_bytes ?? Infinity,
          this.session.limits.value?.file_max_bytes ?? Infinity,
        );
        checkSize(file, max);
        await send(this.session.id.value, file, (sent) => {
          upload.sent = sent;
          this.list.value = [...this.list.value];
        });
        this.dismiss(upload);
        this.session.changes.value++;
      } catch (thrown) {
        const problem = Problem.from(thrown);
        this.session.learn(problem);
        upload.problem = problem.message;
        this.list.value = [...this.list.value];
      }
    }
  }

  dismiss(upload: Upload): void {
    this.list.value = this.list.value.filter((other) => other !== upload);
  }
}

// useDroppedFiles uploads files that are dropped on the page. It reports whether some are held over it.
export function useDroppedFiles(uploads: Uploads): boolean {
  const [isDropping, setDropping] = useState(false);
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setDropping(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setDropping(false); // the window
    const drop = (event: DragEvent) => {
      setDropping(false);
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      setParameters({ panel: "files" }, true);
      void uploads.add(files);
    };
    document.addEventListener("dragover", over);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", over);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, [uploads]);
  return isDropping;
}

const readers: Record<string, (path: string) => string> = {
  csv: (path) => `import pandas as pd\nframe = pd.read_csv(${path})\nframe.head()`,
  parquet: (path) => `import pandas as pd\nframe = pd.read_parquet(${path})\nframe.head()`,
  json: (path) => `import json\nvalue = json.load(open(${path}))\nvalue`,
};

export function readerOf(file: UploadedFile): string {
  const path = JSON.stringify(`/data/${file.path}`);
  const reader = own(readers, /\.(\w+)$/.exec(file.path)?.[1]?.toLowerCase() ?? "");
  return (
    reader?.(path) ??
    (file.mime_type.startsWith("text/")
      ? `text = open(${path}).read()\ntext`
      : `content = open(${path}, "rb").read()\nlen(content)`)
  );
}

export function Files({
  session,
  uploads,
  insertLines,
}: {
  session: Session;
  uploads: Uploads;
  insertLines: (text: string) => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  const hasSession = session.state.value === "live";
  const { answer, problem, reload } = useLoaded<Stored>(hasSession ? `${session.path}/files` : "", [
    session.changes.value,
  ]);
  const [failure, setFailure] = useState<Problem>();
  const drop = async (file: UploadedFile) => {
    setFailure(undefined);
    try {
      await remove(uploadPath(session.id.value, file.path));
      reload();
    } catch (thrown) {
      setFailure(Problem.from(thrown));
    }
  };
  return (
    <>
      <div class="body upload">
        <button onClick={() => input.current?.click()}>Upload files</button>
        <input
          ref={input}
          type="file"
          multiple
          class="visually-hidden"
          tabIndex={-1}
          aria-label="Files to upload"
          onChange={(event) => {
            void uploads.add([...(event.currentTarget.files ?? [])]);
            event.currentTarget.value = "";
          }}
        />
        <span class="muted">
          or drop them anywhere on this page. Code reads them in <code>/data</code>.
        </span>
      </div>
      <UploadList uploads={uploads} />
      {failure && <Failure problem={failure} />}
      {problem && <Failure problem={problem} retry={reload} />}
      {answer && answer.files.length > 0 && (
        <>
          <ul class="entries" aria-label="Uploads">
            {answer.files.map((file) => (
              <li key={file.path}>
                <div class="entry">
                  <a href={uploadPath(session.id.value, file.path)} download>
                    {file.path}
                  </a>{" "}
                  <span class="muted">{bytes(file.size)}</span>
                </div>
                <button aria-label={`Insert code that reads ${file.path}`} onClick={() => insertLines(readerOf(file))}>
                  Insert code
                </button>
                <TwoSteps label="Delete" confirm="Delete it" danger action={() => drop(file)} />
              </li>
            ))}
          </ul>
          <p class="muted body">
            {bytes(answer.bytes)} of at most {bytes(answer.upload_max_bytes)}
          </p>
        </>
      )}
      <h3 class="body">Artifacts: files that code wrote</h3>
      <ArtifactList path={session.id.value ? session.path : ""} version={session.changes.value} />
    </>
  );
}

function UploadList({ uploads }: { uploads: Uploads }) {
  return (
    <ul class="entries" aria-label="Uploads that are not stored">
      {uploads.list.value.map((upload, index) => (
        <li key={index}>
          {upload.problem ? (
            <>
              <div class="entry" role="alert">
                <strong class="field-error">{upload.name} is not uploaded</strong>
                <p>{upload.problem}</p>
              </div>
              <button aria-label={`Dismiss the message about ${upload.name}`} onClick={() => uploads.dismiss(upload)}>
                Dismiss
              </button>
            </>
          ) : (
            <div class="entry">
              {upload.name}{" "}
              <span class="muted">
                {bytes(upload.sent)} of {bytes(upload.size)}
              </span>
              <progress aria-label={`Upload of ${upload.name}`} max={upload.size || 1} value={upload.sent} />
            </div>
          )}
        </li>
      ))}
    </ul>
  );
}
