import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isAborted, Problem } from "../api/problem";
import type { DebugVariable } from "../api/records";
import { count } from "../format";
import { Pager } from "../parts/pager";
import { Panel } from "../parts/panel";
import { isTableType } from "../parts/table";
import type { DebugSession } from "./debug_session";
import { shownTable } from "./debug_table";

const pageSize = 50;

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
  if (scopes.length === 0)
    return (
      <Panel title="Variables">
        <p class="body muted">The program shows its variables when it stops.</p>
      </Panel>
    );
  return (
    <>
      {scopes.map((scope) => (
        <Panel
          key={scope.name}
          title={scope.name}
          note={scope.namedVariables ? count(scope.namedVariables) : undefined}
        >
          <VariableTree
            session={session}
            reference={scope.variablesReference}
            named={scope.namedVariables ?? 0}
            items={0}
            version={session.stop.value}
            path={scope.name}
            changed={scope === scopes[0] ? session.position.value?.changed : undefined}
          />
        </Panel>
      ))}
    </>
  );
}

// VariableTree shows what a reference leads to: named parts first, then the items, a page of them at a time. References are of
// one position of the program, and their numbers begin again at the next: version is the position. Trees inside of others
// get a new version with their new reference.
function VariableTree({
  session,
  reference,
  named,
  items,
  version,
  path,
  changed,
}: {
  session: DebugSession;
  reference: number;
  named: number;
  items: number;
  version: number;
  path: string;
  changed?: string[] | undefined;
}) {
  const [wanted, setWanted] = useState(0); // index of an item
  const [loaded, setLoaded] = useState<{ parts: DebugVariable[]; first: number; version: number }>();
  const [failure, setFailure] = useState("");
  const [total, before] = items ? [items, named] : [named, 0];
  const first = wanted < total ? wanted : 0; // the program may have taken items away
  useEffect(() => {
    let isCurrent = true;
    const [start, number] = first > 0 ? [before + first, pageSize] : [0, before + pageSize];
    session.variables(reference, start, number).then(
      (parts) => {
        if (!isCurrent) return;
        setLoaded({ parts, first, version });
        setFailure("");
      },
      (thrown) => {
        // A reference of an older position is refused; the new position brings its own.
        if (isCurrent && !isAborted(thrown)) setFailure(Problem.from(thrown).message);
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [session, reference, version, first]);
  if (failure) return <p class="body muted">{failure}</p>;
  if (!loaded) return <p class="body muted">Loading…</p>;
  const { parts } = loaded;
  return (
    <ul class="tree">
      {total > pageSize && (
        <li>
          <Pager
            what={items ? "item" : "variable"}
            start={loaded.first}
            size={pageSize}
            total={total}
            first={0}
            go={setWanted}
          >
            {parts.length > 0 &&
              `${count(loaded.first)} to ${count(Math.min(total, loaded.first + pageSize) - 1)} of ${count(total)}`}
          </Pager>
        </li>
      )}
      {parts.length === 0 && (
        <li class="body muted">{loaded.first > 0 ? "They were not recorded." : "There are none."}</li>
      )}
      {parts.map((part, index) => {
        const own = `${path}/${part.name}`;
        const isOpen = opened.value.has(own);
        return (
          <li key={`${part.name} ${index}`} class={changed?.includes(part.name) ? "changed" : ""}>
            <Variable session={session} part={part} parent={path} reference={reference} isOpen={isOpen} />
            {isOpen && part.variablesReference > 0 && (
              <VariableTree
                session={session}
                reference={part.variablesReference}
                named={part.namedVariables ?? 0}
                items={part.indexedVariables ?? 0}
                version={loaded.version}
                path={own}
              />
            )}
          </li>
        );
      })}
    </ul>
  );
}

// Variable is a variable with its value, which a click changes where the program stands. One with parts opens at a click
// on it, and has a button for another value.
function Variable(props: {
  session: DebugSession;
  part: DebugVariable;
  parent: string;
  reference: number;
  isOpen: boolean;
}) {
  const { session, part, parent, reference, isOpen } = props;
  const [isEdited, setEdited] = useState(false);
  const position = session.position.value;
  const mayChange = position?.state === "stopped" && position.live;
  const path = `${parent}/${part.name}`;
  const { step, paths } = session.assigned.value;
  const isAssigned = step === position?.step && paths.has(path);
  if (isEdited && mayChange) {
    return (
      <ValueEditor
        part={part}
        save={(value) => session.assign(reference, part.name, value, path)}
        close={() => setEdited(false)}
      />
    );
  }
  const edit = () => setEdited(true);
  const label = `Change ${part.name}`;
  const names = (value: ComponentChildren) => (
    <>
      <span class="twist" aria-hidden="true">
        {part.variablesReference > 0 ? (isOpen ? "▾" : "▸") : ""}
      </span>
      <code class="name">{part.name}</code> {value}{" "}
      <span class="muted">
        {isAssigned && <strong class="mark">changed by you </strong>}
        {part.type}
      </span>
    </>
  );
  const value = <code class="value">{part.value}</code>;
  if (part.variablesReference > 0) {
    return (
      <div class="variable">
        <button class="row-button" aria-expanded={isOpen} onClick={() => toggle(path, parent, part)}>
          {names(value)}
        </button>
        {mayChange && (
          <button class="change" aria-label={label} onClick={edit}>
            Change
          </button>
        )}
      </div>
    );
  }
  return (
    <div class="row-button">
      {names(
        mayChange ? (
          <button class="value-button" aria-label={`${label}, ${part.value}`} title="Click to change it" onClick={edit}>
            {value}
          </button>
        ) : (
          value
        ),
      )}
    </div>
  );
}

// ValueEditor takes another value for a variable: an expression of Python.
function ValueEditor(props: { part: DebugVariable; save: (value: string) => Promise<void>; close: () => void }) {
  const { part, save, close } = props;
  const [failure, setFailure] = useState("");
  const [isSaving, setSaving] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.select(), []); // before the next key
  const submit = async (event: Event) => {
    event.preventDefault();
    setSaving(true);
    try {
      await save(field.current?.value ?? "");
      close();
    } catch (thrown) {
      setFailure(Problem.from(thrown).message);
      setSaving(false);
    }
  };
  return (
    <form class="value-editor" onSubmit={submit} onKeyDown={(event) => event.key === "Escape" && close()}>
      <label>
        <code class="name">{part.name}</code>
        <input
          ref={field}
          class="mono"
          aria-label={`New value of ${part.name}`}
          defaultValue={part.value}
          spellcheck={false}
          autocomplete="off"
          onInput={() => setFailure("")}
        />
      </label>
      <button disabled={isSaving}>Set</button>
      <button type="button" onClick={close}>
        Cancel
      </button>
      {failure && (
        <p class="field-error" role="alert">
          {failure}
        </p>
      )}
    </form>
  );
}
