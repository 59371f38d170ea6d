import { useLayoutEffect, useRef } from "preact/hooks";
import type { ConversationView, Message } from "../api/chat";
import { fullTime, plural } from "../format";
import { Prose } from "../parts/prose";
import type { Live } from "./chat_live";
import { Run } from "./chat_run";

const noteTitles: Record<string, string> = {
  problem: "The answer ended",
  stopped: "Stopped",
  interrupted: "Interrupted",
  "new-session": "New session",
};

function Note({ of: message }: { of: Message }) {
  const tone = message.note === "problem" ? "notice danger" : message.note === "stopped" ? "notice" : "notice warn";
  return (
    <li>
      <div class={tone} role={message.note === "problem" ? "alert" : undefined}>
        <strong>{noteTitles[message.note ?? ""] ?? "Note"}</strong>
        <p>{message.text}</p>
      </div>
    </li>
  );
}

function Answer({
  of: message,
  firstCall,
  results,
  live,
  answering,
}: {
  of: Message;
  firstCall: number; // the number of its first call in the conversation
  results: Map<string, Message>;
  live: Live;
  answering: boolean;
}) {
  return (
    <li class="answer">
      <h2 class="visually-hidden">The model, {fullTime(message.created_at)}</h2>
      {message.left_out ? (
        <p class="muted">
          The conversation is long: for this answer the model did not read{" "}
          {plural(message.left_out, "older message or result", "older messages or results")}.
        </p>
      ) : null}
      {message.text && <Prose text={message.text} />}
      {message.status === "cut" && <p class="muted">The answer was cut off here.</p>}
      {message.calls?.map((call, index) => {
        const result = results.get(call.id);
        return (
          <Run
            key={call.id}
            call={call}
            number={firstCall + index}
            message={result}
            answering={answering}
            output={result ? (live.output[result.position] ?? "") : ""}
            isCut={result !== undefined && live.isCut[result.position] === true}
          />
        );
      })}
    </li>
  );
}

// Writing shows the message that the model writes now.
function Writing({ live }: { live: Live }) {
  const text = Object.values(live.text).join("");
  const tool = Object.values(live.call).at(-1);
  return (
    <li class="answer writing">
      {text && <Prose text={text} />}
      <p class="loading" role="status">
        <span class="spinner" aria-hidden="true" />
        {tool === "run_python"
          ? "The model writes code…"
          : tool
            ? `The model calls ${tool}…`
            : text
              ? "The model writes…"
              : "Waiting for the model…"}
      </p>
    </li>
  );
}

// Messages shows a conversation. It stays at the end until the person scrolls up.
export function Messages({ view, live }: { view: ConversationView; live: Live }) {
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const lastTop = useRef(0);
  const hasMoved = useRef(false); // the person, since the end was in sight
  const move = () => {
    hasMoved.current = true;
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const stay = () => {
      if (isAtEnd.current) element.scrollTop = element.scrollHeight;
    };
    const observer = new ResizeObserver(stay);
    observer.observe(element.firstElementChild!); // figures and code get their height later
    observer.observe(element); // what is below it may take more room
    return () => observer.disconnect();
  }, []);
  const { messages, answering } = view;
  const last = messages.at(-1);
  useLayoutEffect(() => {
    if (last?.role !== "user") return;
    isAtEnd.current = true; // one has just sent it
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [last?.position]);
  let calls = 0;
  const results = new Map(messages.filter((m) => m.role === "tool").map((m) => [m.call_id ?? "", m]));
  const runs = messages.some((m) => m.status === "running");
  const waits = last?.role === "assistant" && (last.calls?.length ?? 0) > 0;
  return (
    <div
      ref={box}
      class="messages"
      tabIndex={0}
      role="group"
      aria-label="Conversation"
      onScroll={({ currentTarget: at }) => {
        // The event comes late. If more has been loaded since, the end is further down, and if a part became smaller, the
        // place is further up, but nobody has scrolled.
        if (at.scrollHeight - at.scrollTop - at.clientHeight < 60) {
          isAtEnd.current = true;
          hasMoved.current = false;
        } else if (hasMoved.current && at.scrollTop < lastTop.current) isAtEnd.current = false;
        lastTop.current = at.scrollTop;
      }}
      onWheel={move}
      onTouchMove={move}
      onKeyDown={move}
      onPointerDown={move}
    >
      <ol>
        {messages.map((message) => {
          switch (message.role) {
            case "user":
              return (
                <li key={message.position} class="question">
                  <h2 class="visually-hidden">
                    {view.user_id}, {fullTime(message.created_at)}
                  </h2>
                  <p>{message.text}</p>
                </li>
              );
            case "assistant":
              calls += message.calls?.length ?? 0;
              return (
                <Answer
                  key={message.position}
                  of={message}
                  firstCall={calls - (message.calls?.length ?? 0) + 1}
                  results={results}
                  live={live}
                  answering={answering}
                />
              );
            case "note":
              return <Note key={message.position} of={message} />;
            default:
              return null; // shown with its call
          }
        })}
        {answering && !runs && !waits && <Writing live={live} />}
      </ol>
      {messages.length === 0 && !answering && (
        <p class="muted">No messages yet. Ask something about the database, or upload a file.</p>
      )}
    </div>
  );
}
