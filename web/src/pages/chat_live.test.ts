import { expect, test } from "vitest";
import type { Message } from "../api/chat";
import { type Live, nothing, withEvent, withMessage } from "./chat_live";

const after = (...events: [name: string, body: unknown][]): Live =>
  events.reduce((live, [name, body]) => withEvent(live, name, body), nothing);
const message = (position: number, changes: Partial<Message> = {}) =>
  ({ position, status: "complete", text: "", ...changes }) as Message;

test("pieces of a text are joined, each at its message", () => {
  const live = after(
    ["text", { position: 1, text: "Hel" }],
    ["text", { position: 3, text: "other" }],
    ["text", { position: 1, text: "lo" }],
  );
  expect(live.text).toEqual({ 1: "Hello", 3: "other" });
});

test("a message that is stored takes the place of what was written of it", () => {
  const live = after(
    ["text", { position: 1, text: "Hello" }],
    ["call", { position: 1, tool: "run_python" }],
    ["text", { position: 2, text: "next" }],
    ["message", message(1)],
  );
  expect(live.text).toEqual({ 2: "next" });
  expect(live.call).toEqual({});
});

test("what code prints stays while it runs, and goes when the run is stored", () => {
  const printed: [string, unknown][] = [
    ["message", message(2, { status: "running" })],
    ["stdout", { position: 2, text: "a\n" }],
    ["stderr", { position: 2, text: "b\n", truncated: true }],
  ];
  expect(after(...printed)).toMatchObject({ output: { 2: "a\nb\n" }, isCut: { 2: true } });
  expect(after(...printed, ["message", message(2, { status: "running" })]).output).toEqual({ 2: "a\nb\n" });
  expect(after(...printed, ["message", message(2)]).output).toEqual({});
});

test("an event of a later version changes nothing", () => {
  expect(after(["thinking", { position: 1 }])).toBe(nothing);
});

test("a message has its place by its position, and replaces an earlier state of itself", () => {
  const list = [message(0), message(2, { status: "running" })];
  const positions = (messages: Message[]) => messages.map(({ position, status }) => `${position} ${status}`);
  expect(positions(withMessage(list, message(1)))).toEqual(["0 complete", "1 complete", "2 running"]);
  expect(positions(withMessage(list, message(2)))).toEqual(["0 complete", "2 complete"]);
});
