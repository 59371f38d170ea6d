import { useLayoutEffect } from "preact/hooks";
import { Icon } from "../shell";
import type { DebugSession, Move } from "./debug_session";

const toStart = "M5 3l8 5-8 5z";
const commands: { move: Move; name: string; keys: string; icon: string }[] = [
  { move: "next", name: "Step over", keys: "F10", icon: "M2 8a6 6 0 0111-2M13 2v4H9M8 12v.5" },
  { move: "stepIn", name: "Step into", keys: "F11", icon: "M8 2v8M5 7l3 3 3-3M8 13v.5" },
  { move: "stepOut", name: "Step out", keys: "Shift+F11", icon: "M8 10V2M5 5l3-3 3 3M8 13v.5" },
  { move: "stepBack", name: "Step back", keys: "Alt+F10", icon: "M14 8A6 6 0 003 6M3 2v4h4M8 12v.5" },
  { move: "reverseContinue", name: "Continue back", keys: "Alt+F5", icon: "M11 3L3 8l8 5z" },
];

interface Actions {
  session: DebugSession | undefined; // undefined: the code is edited
  proceed: () => unknown; // starts the code, or continues
  toggleBreakpoint: () => void;
}

// useDebugKeys moves the program with the keys that the tools name. F9 sets a breakpoint, or removes it.
export function useDebugKeys(props: Actions): void {
  const { session } = props;
  const state = session?.position.value?.state;
  // An effect after the paint would leave a moment in which a key finds the state of the picture before.
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey) return;
      const key = (event.altKey ? "Alt+" : "") + (event.shiftKey ? "Shift+" : "") + event.key;
      const command = commands.find((c) => c.keys === key);
      if (command) void session?.move(command.move);
      else if (key === "F5") void props.proceed();
      else if (key === "Shift+F5") void (session && state !== "ended" && session.end());
      else if (key === "F6") void session?.pause();
      else if (key === "F9") props.toggleBreakpoint();
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  });
}

// Toolbar has the commands that move the program.
export function Toolbar(props: {
  session: DebugSession | undefined; // undefined: the code is edited
  proceed: () => unknown; // starts the code, or continues
  edit: () => unknown;
  isStarting: boolean;
  mayStart: boolean;
}) {
  const { session } = props;
  const position = session?.position.value;
  const state = position?.state;
  return (
    <div class="debug-toolbar panel" role="toolbar" aria-label="Debugger">
      {session ? (
        <Tool name="Continue" keys="F5" icon={toStart} disabled={state !== "stopped"} action={props.proceed} isMain />
      ) : (
        <Tool
          name={props.isStarting ? "Starting…" : "Start"}
          keys="F5"
          icon={toStart}
          disabled={!props.mayStart}
          action={props.proceed}
          isMain
        />
      )}
      {commands.map((command) => (
        <Tool
          key={command.move}
          name={command.name}
          keys={command.keys}
          icon={command.icon}
          disabled={!(state === "stopped" || (state === "ended" && /[bB]ack|reverse/.test(command.move)))}
          action={() => session?.move(command.move)}
        />
      ))}
      <Tool
        name="Pause"
        keys="F6"
        icon="M5 3v10M11 3v10"
        disabled={state !== "running"}
        action={() => session?.pause()}
      />
      <Tool
        name="Stop"
        keys="Shift+F5"
        icon="M4 4h8v8H4z"
        disabled={!session || state === "ended" || !position}
        action={() => session?.end()}
      />
      {session && <button onClick={props.edit}>Edit the code</button>}
    </div>
  );
}

function Tool(props: {
  name: string;
  keys: string;
  icon: string;
  disabled: boolean;
  action: () => unknown;
  isMain?: boolean;
}) {
  return (
    <button
      class={props.isMain ? "primary" : ""}
      disabled={props.disabled}
      title={`${props.name} (${props.keys})`}
      aria-keyshortcuts={props.keys}
      onClick={() => void props.action()}
    >
      <Icon of={props.icon} /> <span class="words">{props.name}</span>{" "}
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a <kbd> takes no focus */}
      <kbd aria-hidden="true">{props.keys}</kbd>
    </button>
  );
}
