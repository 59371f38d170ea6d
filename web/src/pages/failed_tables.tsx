import { useState } from "preact/hooks";
import type { Execution } from "../api/records";
import { RemoteTable } from "../parts/table";

// tablesOf returns the names of the session's variables that are tables, in the frame of the submitted code.
export function tablesOf(e: Execution): string[] {
  const frame = (e.exception?.traceback ?? []).find(({ function: name, file }) => name === "<module>" && !file);
  const variables = Object.entries(frame?.variables ?? {});
  return variables.filter(([, value]) => /^<(DataFrame|Series|ndarray) /.test(value)).map(([name]) => name);
}

// FailedTables shows the rows of the tables among the values of a failure. The session may have changed them since.
export function FailedTables({ of: e }: { of: Execution }) {
  const [shown, setShown] = useState("");
  const names = tablesOf(e);
  if (names.length === 0 || !e.sandbox_id || e.kind === "quick-execute") return null;
  const path = `/sandbox/${encodeURIComponent(e.sandbox_id)}/variables/${encodeURIComponent(shown)}/rows`;
  return (
    <>
      <p>
        <span class="muted">Rows that the session has now:</span>{" "}
        {names.map((name) => (
          <button
            key={name}
            class="link mono"
            aria-expanded={shown === name}
            onClick={() => setShown(shown === name ? "" : name)}
          >
            {name}
          </button>
        ))}
      </p>
      {shown && <RemoteTable key={path} path={path} label={`Rows of ${shown}`} />}
    </>
  );
}
