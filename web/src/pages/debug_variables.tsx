import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { isAborted, Problem } from "../api/problem";
import type { DebugVariable } from "../api/records";
import { count } from "../format";
import { Panel } from "../parts/panel";
import type { DebugSession } from "./debug_session";
import { isTableType, shownTable } from "./debug_table";

const pageSize = 100;

// opened has the paths of opened variables. They stay open when the program moves.
const opened = signal<ReadonlySet<string>>(new Set());

// toggle opens or closes a variable, or a part of one. An open table of a scope is also shown as a table.
function toggle(path: string, parent: string, part: DebugVariable): void {
  const next = new Set(opened.value);
  const isOpen = !next.delete(path);
  if (isOpen) next.add(path);
  opened.value = next;
  const isOfScope = !parent.includes("/");
  if (!isOfScope || !isTableType(part.type)) return;
  const { scope, name } = shownTable.value ?? {};
  if (isOpen) shownTable.value = { scope: parent, name: part.name };
  else if (scope === parent && name === part.name) shownTable.value = undefined;
}

// Scopes shows the variables of the chosen frame.
export function Scopes({ session }: { session: DebugSession }) {
  const scopes = session.scopes.value;
  if (scopes.length === 0) return <Panel title="Variables"><p class="body muted">The program shows its variables when it stops.</p></Panel>;
  return (
    <>
      {scopes.map((scope) => (
        <Panel key={scope.name} title={scope.name} note={scope.namedVariables ? count(scope.namedVariables) : undefined}>
          <VariableTree session={session} reference={scope.variablesReference} version={session.stop.value} path={scope.name} changed={scope === scopes[0] ? session.position.value?.changed : undefined} />
        </Panel>
      ))}
    </>
  );
}

// VariableTree shows what a reference leads to. References are of one position of the program, and their numbers begin again
// at the next: version is the position. Trees inside of others get a new version with their new reference.
function VariableTree({ session, reference, version, path, changed }: {
  session: DebugSession;
  reference: number;
  version: number;
  path: string;
  changed?: string[] | undefined;
}) {
  const [loaded, setLoaded] = useState<{ parts: DebugVariable[]; version: number }>();
  const [isWhole, setWhole] = useState(true);
  const [failure, setFailure] = useState("");
  const load = async (start: number, isCurrent: () => boolean) => {
    try {
      const page = await session.variables(reference, start, pageSize);
      if (!isCurrent()) return;
      setLoaded((before) => ({ parts: start > 0 ? [...(before?.parts ?? []), ...page] : page, version }));
      setWhole(page.length < pageSize);
      setFailure("");
    } catch (thrown) {
      // A reference of an older position is refused; the new position brings its own.
      if (isCurrent() && !isAborted(thrown)) setFailure(Problem.from(thrown).message);
    }
  };
  useEffect(() => {
    let isCurrent = true;
    void load(0, () => isCurrent);
    return () => {
      isCurrent = false;
    };
  }, [session, reference, version]);
  if (failure) return <p class="body muted">{failure}</p>;
  if (!loaded) return <p class="body muted">Loading…</p>;
  const { parts } = loaded;
  if (parts.length === 0) return <p class="body muted">There are none.</p>;
  return (
    <ul class="tree">
      {parts.map((part, index) => {
        const own = `${path}/${part.name}`;
        const isOpen = opened.value.has(own);
        return (
          <li key={`${part.name} ${index}`} class={changed?.includes(part.name) ? "changed" : ""}>
            {part.variablesReference > 0 ? (
              <button class="row-button" aria-expanded={isOpen} onClick={() => toggle(own, path, part)}><Names part={part} mark={isOpen ? "▾" : "▸"} /></button>
            ) : <div class="row-button"><Names part={part} mark="" /></div>}
            {isOpen && part.variablesReference > 0 && <VariableTree session={session} reference={part.variablesReference} version={loaded.version} path={own} />}
          </li>
        );
      })}
      {!isWhole && <li><button class="row-button" onClick={() => void load(parts.length, () => session.stop.value === version)}>Show more</button></li>}
    </ul>
  );
}

function Names({ part, mark }: { part: DebugVariable; mark: string }) {
  return (
    <>
      <span class="twist" aria-hidden="true">{mark}</span>
      <code class="name">{part.name}</code> <code class="value">{part.value}</code> <span class="muted">{part.type}</span>
    </>
  );
}
