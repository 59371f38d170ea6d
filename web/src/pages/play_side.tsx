import { address } from "../api/client";
import { Problem } from "../api/problem";
import type { PythonEditor } from "../parts/python_editor";
import { parameter } from "../router";
import type { Example } from "./play_examples";
import { Files, type Uploads } from "./play_files";
import { Examples, Helpers, SchemaBrowser, Variables } from "./play_panels";
import type { Session } from "./play_session";
import { Sessions } from "./play_sessions";

const panels = [
  ["examples", "Examples"],
  ["variables", "Variables"],
  ["schema", "Schema"],
  ["files", "Files"],
  ["functions", "Functions"],
  ["sessions", "Sessions"],
] as const;

// Side has the panels next to the code, one at a time.
export function Side({
  session,
  uploads,
  editor,
  use,
  run,
}: {
  session: Session;
  uploads: Uploads;
  editor: { current: PythonEditor | undefined };
  use: (example: Example) => void;
  run: (example: Example) => void;
}) {
  const shown = panels.find(([name]) => name === parameter("panel"))?.[0] ?? "examples";
  const title = panels.find(([name]) => name === shown)![1];
  const link = (panel: string) => address("/ui/play", { sandbox: parameter("sandbox"), panel });
  const insert = (text: string) => editor.current?.insert(text);
  const insertLines = (text: string) => editor.current?.insertLines(text);
  return (
    <aside class="play-side" aria-label="Session">
      <nav class="tabs" aria-label="Panels">
        {panels.map(([name, label]) => (
          <a key={name} href={link(name)} aria-current={name === shown ? "true" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      <section class="panel" aria-label={title}>
        {shown === "examples" && <Examples session={session} use={use} run={run} />}
        {shown === "variables" && <Variables session={session} />}
        {shown === "schema" && <SchemaBrowser session={session} insert={insert} insertLines={insertLines} />}
        {shown === "files" && <Files session={session} uploads={uploads} insertLines={insertLines} />}
        {shown === "sessions" && <Sessions session={session} />}
        {shown === "functions" && (
          <Helpers
            session={session}
            insert={insert}
            begin={() =>
              void session.ensure().catch((thrown: unknown) => {
                session.problem.value = Problem.from(thrown);
              })
            }
          />
        )}
      </section>
    </aside>
  );
}
