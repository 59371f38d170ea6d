import { useEffect, useRef, useState } from "preact/hooks";
import type { ConversationView, Message } from "../api/chat";
import { get, post } from "../api/client";
import { follow } from "../api/events";
import { isAborted, Problem } from "../api/problem";

// What is written now, by the position of its message, until the message is stored.
export interface Live {
  text: Record<number, string>;
  call: Record<number, string>; // the tool that the model is about to call
  output: Record<number, string>; // what the code of a tool has printed so far
  isCut: Record<number, boolean>; // more was printed than is sent here
}

interface ConversationState {
  view: ConversationView | undefined;
  live: Live;
  problem: Problem | undefined;
  send: (text: string) => Promise<void>;
  stop: () => Promise<void>;
  reload: () => void;
}

const nothing: Live = { text: {}, call: {}, output: {}, isCut: {} };

interface Delta {
  position: number;
  text: string;
  truncated?: boolean; // the last piece: the rest is in the execution
}

function without(record: Record<number, string>, position: number): Record<number, string> {
  const { [position]: _, ...rest } = record;
  return rest;
}

function withText(record: Record<number, string>, { position, text }: Delta): Record<number, string> {
  return { ...record, [position]: (record[position] ?? "") + text };
}

// withMessage returns messages with one more, or in place of the one at its position.
function withMessage(list: Message[], message: Message): Message[] {
  const others = list.filter((m) => m.position !== message.position);
  return [...others, message].sort((a, b) => a.position - b.position);
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
            case "text":
              setLive((now) => ({ ...now, text: withText(now.text, body as Delta) }));
              break;
            case "call": {
              const { position, tool } = body as { position: number; tool: string };
              setLive((now) => ({ ...now, call: { ...now.call, [position]: tool } }));
              break;
            }
            case "stdout":
            case "stderr":
              setLive((now) => ({
                ...now,
                output: withText(now.output, body as Delta),
                isCut: (body as Delta).truncated ? { ...now.isCut, [(body as Delta).position]: true } : now.isCut,
              }));
              break;
            case "message": {
              const message = body as Message;
              setView((now) => now && { ...now, messages: withMessage(now.messages, message) });
              setLive((now) => ({
                isCut: now.isCut,
                text: without(now.text, message.position),
                call: without(now.call, message.position),
                output: message.status === "running" ? now.output : without(now.output, message.position),
              }));
              break;
            }
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
