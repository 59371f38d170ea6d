import { useEffect, useRef, useState } from "preact/hooks";
import type { ConversationView, Message } from "../api/chat";
import { get, post } from "../api/client";
import { follow } from "../api/events";
import { isAborted, Problem } from "../api/problem";
import { type Live, nothing, withEvent, withMessage } from "./chat_live";

interface ConversationState {
  view: ConversationView | undefined;
  live: Live;
  problem: Problem | undefined;
  send: (text: string) => Promise<void>;
  stop: () => Promise<void>;
  reload: () => void;
}

export function conversationPath(id: string): string {
  return `/chat/conversations/${encodeURIComponent(id)}`;
}

// useConversation loads a conversation, and follows the answer that is being written in it. Without an id there is none.
export function useConversation(id: string): ConversationState {
  const [view, setView] = useState<ConversationView>();
  const [live, setLive] = useState<Live>(nothing);
  const [problem, setProblem] = useState<Problem>();
  const [attempt, setAttempt] = useState(0);
  const request = useRef<AbortController | undefined>(undefined);
  const path = conversationPath(id);

  const load = async (mine = request.current) => {
    try {
      const loaded = await get<ConversationView>(path, {}, mine?.signal);
      if (mine?.signal.aborted) return;
      setView(loaded);
      setProblem(undefined);
    } catch (thrown) {
      if (!isAborted(thrown)) setProblem(Problem.from(thrown));
    }
  };
  useEffect(() => {
    const mine = new AbortController();
    request.current = mine;
    setView(undefined);
    setLive(nothing);
    setProblem(undefined);
    if (id) void load(mine);
    return () => mine.abort();
  }, [id, attempt]);

  const answering = view?.conversation_id === id && view.answering;
  useEffect(() => {
    if (!answering) return;
    const mine = request.current;
    setLive(nothing); // the events begin with the first
    const end = follow(
      `${path}/events`,
      {},
      {
        onEvent: ({ name, data }) => {
          const body = JSON.parse(data) as unknown;
          switch (name) {
            case "message":
              setView((now) => now && { ...now, messages: withMessage(now.messages, body as Message) });
              setLive((now) => withEvent(now, name, body));
              break;
            case "problem":
              setProblem(new Problem(0, "The answer ended", (body as { text: string }).text));
              break;
            case "reload":
              void load(mine);
              break;
            case "end":
              end();
              setLive(nothing);
              void load(mine);
              break;
            default:
              setLive((now) => withEvent(now, name, body));
          }
        },
        onLost: setProblem,
        onOpen: () => setProblem(undefined),
      },
    );
    return end;
  }, [id, answering]);

  return {
    view: view?.conversation_id === id ? view : undefined,
    live,
    problem,
    send: async (text) => {
      const { message } = await post<{ message: Message }>(`${path}/messages`, { text });
      setView((now) => now && { ...now, answering: true, messages: withMessage(now.messages, message) });
      if (!view) await load();
    },
    stop: async () => {
      try {
        await post(`${path}/stop`);
      } catch (thrown) {
        const failed = Problem.from(thrown);
        if (failed.status !== 409) throw failed; // it has ended meanwhile
      }
    },
    reload: () => setAttempt(attempt + 1),
  };
}
