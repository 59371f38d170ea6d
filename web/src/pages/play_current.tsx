import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Problem } from "../api/problem";
import { shortID } from "../format";
import { readDraft, writeDraft } from "../parts/draft";
import { Failure, TwoSteps } from "../parts/feedback";
import type { PythonEditor } from "../parts/python_editor";
import { parameter, path, setParameters } from "../router";
import { Session } from "./play_session";

interface Sessions {
  current: Signal<Session>;
  former: Session | undefined; // the person has just left it
  begin: (next: Session) => void;
  forgetFormer: () => void;
}

// useSessions has the session that the address or this tab names, and begins others. The editor checks its code again
// when the session changes. onBegin is called when another session begins.
export function useSessions(editor: { current: PythonEditor | undefined }, onBegin: () => void): Sessions {
  const current = useSignal<Session>(useMemo(() => new Session(parameter("sandbox") || readDraft("play-sandbox")), []));
  const [former, setFormer] = useState<Session>();
  const session = current.value;
  const state = session.state.value;
  const begin = (next: Session) => {
    const left = current.value;
    left.leave();
    setFormer(left.state.value === "none" ? undefined : left);
    current.value = next;
    onBegin();
    writeDraft("play-sandbox", "");
    setParameters({ sandbox: "" }, true);
  };

  const wanted = parameter("sandbox");
  const id = session.id.value;
  useEffect(() => {
    if (path.value !== "/play") return;
    if (wanted && wanted !== id)
      current.value = new Session(wanted); // by the browser's Back
    else if (id && state !== "ended") writeDraft("play-sandbox", id);
    if (id && !wanted) setParameters({ sandbox: id }, true);
  }, [wanted, id, state]);
  useEffect(() => {
    // A session that only this tab remembers, and that has ended, is of no interest.
    const isRemembered = wanted === "";
    void session.open().then(() => {
      if (isRemembered && session.id.value && session.state.value === "ended" && current.value === session)
        begin(new Session());
      editor.current?.check();
    });
    return () => session.leave();
  }, [session]);
  useEffect(() => {
    if (state === "live" || state === "none") editor.current?.check();
  }, [state]);
  return { current, former, begin, forgetFormer: () => setFormer(undefined) };
}

// SessionActions says what the session may do, and ends it or begins another.
export function SessionActions({ session, begin }: { session: Session; begin: () => void }) {
  const limits = session.limits.value;
  const state = session.state.value;
  if (state === "none") return <span class="muted">A session begins when you run code.</span>;
  const facts = limits && [
    `runs of at most ${limits.max_execution_time} s`,
    limits.write_policy === "capture" ? "writes wait for an admin" : "no writes",
    limits.enable_network_access ? `network: ${limits.allowed_hosts.join(", ")}` : "no network",
    `ends after ${Math.round(limits.idle_timeout / 60)} min without use`,
  ];
  return (
    <>
      <span class="muted session-facts" title={facts?.join(" · ")}>
        {state === "opening" && !session.id.value ? (
          "Starting a session…"
        ) : (
          <>
            Session <span class="mono">{shortID(session.id.value)}</span>
          </>
        )}
        {state === "ended" && ", ended"}
        {state === "live" && facts && ` · ${facts.join(" · ")}`}
      </span>
      {state === "live" && (
        <TwoSteps label="End session" confirm="End it, with its variables" danger action={() => session.end()} />
      )}
      <button title="Begins with no variables. You can go back to the current session" onClick={begin}>
        New session
      </button>
    </>
  );
}

// Notices says why code cannot run, and what to do about it.
export function Notices({
  session,
  begin,
  refusal,
  wantsCapture,
}: {
  session: Session;
  begin: (next: Session) => void;
  refusal: Problem | undefined;
  wantsCapture: boolean;
}) {
  return (
    <>
      {session.state.value === "ended" && (
        <div class="notice warn" role="alert">
          <strong>This session has ended.</strong>
          <p>
            Its variables and uploads are gone. Your code is still in the editor, and former runs stay in the history.
          </p>
          <button onClick={() => begin(new Session())}>Start a new session</button>
        </div>
      )}
      {wantsCapture && session.state.value !== "ended" && (
        <div class="notice" role="status">
          <strong>This session refuses writes.</strong>
          <p>In a session that captures writes, they wait until an admin applies them.</p>
          <button onClick={() => begin(new Session("", { write_policy: "capture" }))}>
            Start a session that captures writes
          </button>
        </div>
      )}
      {session.problem.value && (
        <Failure
          problem={session.problem.value}
          retry={() => {
            session.problem.value = undefined;
            void session.open();
          }}
        />
      )}
      {refusal && <Failure problem={refusal} />}
    </>
  );
}
