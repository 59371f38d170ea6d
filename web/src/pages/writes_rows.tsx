import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { get, post } from "../api/client";
import { Problem } from "../api/problem";
import type { PendingWrite, WritePreview, WriteSample, WriteUndo } from "../api/records";
import { count, plural } from "../format";
import { Copy, Failure, Loading } from "../parts/feedback";
import { RowTable } from "../parts/table";
import { changesFirst, withChanges } from "./writes_changes";

// Sample shows some of the rows that a write would affect, and their number. They are read when a person opens it,
// because each reading is a query that history keeps.
export function Sample({ of: write }: { of: PendingWrite }) {
  return (
    <Loaded<WriteSample>
      path={`/pending-writes/${encodeURIComponent(write.id)}/sample`}
      label="Sample of the rows"
      what="the sample"
      isRun
    >
      {(sample) => (
        <>
          <p class="muted">
            {sample.affected_rows !== null
              ? `Counted: ${plural(sample.affected_rows, "row")}.`
              : `Not counted: ${sample.count_error}. PostgreSQL expects about ${plural(write.row_estimate, "row")}.`}
          </p>
          {sample.rows.length === 0 ? (
            <p class="muted">No row matches now.</p>
          ) : (
            <>
              <p class="muted">Rows as they are now; at most ten are read.</p>
              <RowTable
                rows={sample.rows}
                columns={changesFirst(Object.keys(sample.rows[0]!))}
                label="Sample of the rows"
              />
            </>
          )}
        </>
      )}
    </Loaded>
  );
}

// Preview shows rows before and after. The write runs and is rolled back when a person opens it.
export function Preview({ of: write }: { of: PendingWrite }) {
  return (
    <Loaded<WritePreview>
      path={`/pending-writes/${encodeURIComponent(write.id)}/preview`}
      label="Rows before and after: run it now and roll back"
      what="the preview"
      isRun
    >
      {(preview) => {
        const rows = preview.rows.map(withChanges);
        const columns = changesFirst([...new Set(rows.flatMap((row) => Object.keys(row)))]);
        return (
          <>
            <p class="muted">
              It changed {plural(preview.affected_rows, "row")}, and was rolled back.
              {rows.length < preview.affected_rows && ` The first ${count(rows.length)} are shown.`}
            </p>
            {rows.length > 0 && <RowTable rows={rows} columns={columns} label="Rows before and after" />}
          </>
        );
      }}
    </Loaded>
  );
}

// Undo shows how an applied write can be undone.
export function Undo({ of: write }: { of: PendingWrite }) {
  return (
    <Loaded<WriteUndo>
      path={`/pending-writes/${encodeURIComponent(write.id)}/undo`}
      label="Undo script"
      what="the undo script"
    >
      {(undo) => (
        <>
          {undo.script ? (
            <>
              <p>
                It restores {plural(undo.rows, "row")}, and leaves a row that has changed since.{" "}
                <Copy label="Copy" text={() => undo.script!} />
              </p>
              <pre class="statement" tabIndex={0} role="group" aria-label="Undo script">
                {undo.script}
              </pre>
            </>
          ) : (
            <p class="why">There is no script: {undo.missing}.</p>
          )}
          <p class="muted">It cannot undo:</p>
          <ul class="muted">
            {undo.cannot.map((what) => (
              <li key={what}>{what}</li>
            ))}
          </ul>
        </>
      )}
    </Loaded>
  );
}

// Loaded is a part of the page that sends a request when a person opens it for the first time.
function Loaded<T>(props: {
  path: string;
  label: string;
  what: string;
  isRun?: boolean; // the request runs something
  children: (answer: T) => ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(false);
  const [answer, setAnswer] = useState<T>();
  const [problem, setProblem] = useState<Problem>();
  const load = async () => {
    setProblem(undefined);
    try {
      setAnswer(await (props.isRun ? post<T>(props.path, {}) : get<T>(props.path)));
    } catch (thrown) {
      setProblem(Problem.from(thrown));
    }
  };
  return (
    <details
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
        if (event.currentTarget.open && answer === undefined) void load();
      }}
    >
      <summary>{props.label}</summary>
      {!isOpen ? null : problem ? (
        <Failure problem={problem} retry={() => void load()} />
      ) : answer === undefined ? (
        <Loading what={props.what} />
      ) : (
        props.children(answer)
      )}
    </details>
  );
}
