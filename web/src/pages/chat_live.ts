import type { Message } from "../api/chat";

// What is written now, by the position of its message, until the message is stored.
export interface Live {
  text: Record<number, string>;
  call: Record<number, string>; // the tool that the model is about to call
  output: Record<number, string>; // what the code of a tool has printed so far
  isCut: Record<number, boolean>; // more was printed than is sent here
}

export const nothing: Live = { text: {}, call: {}, output: {}, isCut: {} };

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
export function withMessage(list: Message[], message: Message): Message[] {
  const others = list.filter((m) => m.position !== message.position);
  return [...others, message].sort((a, b) => a.position - b.position);
}

// withEvent returns what is written after an event of the answer.
export function withEvent(live: Live, name: string, body: unknown): Live {
  switch (name) {
    case "text":
      return { ...live, text: withText(live.text, body as Delta) };
    case "call": {
      const { position, tool } = body as { position: number; tool: string };
      return { ...live, call: { ...live.call, [position]: tool } };
    }
    case "stdout":
    case "stderr": {
      const delta = body as Delta;
      const isCut = delta.truncated ? { ...live.isCut, [delta.position]: true } : live.isCut;
      return { ...live, output: withText(live.output, delta), isCut };
    }
    case "message": {
      const { position, status } = body as Message;
      return {
        isCut: live.isCut,
        text: without(live.text, position),
        call: without(live.call, position),
        output: status === "running" ? live.output : without(live.output, position),
      };
    }
    default:
      return live;
  }
}
