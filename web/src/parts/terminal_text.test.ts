import { expect, test } from "vitest";
import { TextTail, terminalText } from "./terminal_text";

test.each([
  ["plain\ntext", "plain\ntext"],
  ["10 %\r50 %\r100 %\ndone", "100 %\ndone"],
  ["long text\rab", "abng text"],
  ["long text\r\x1b[Kab", "ab"],
  ["one\r\ntwo", "one\ntwo"],
  ["abc\x08\x08X", "aXc"],
  ["\x08a", "a"],
  ["\x1b[1;31mred\x1b[0m", "red"],
  ["cut \x1b[3", "cut "],
  ["a\nb\rc", "a\nc"],
])("a terminal shows %j as %j", (text, shown) => {
  expect(terminalText(text)).toBe(shown);
});

test("pieces of a stream show the same as the whole", () => {
  const text = "\x1b[31m1 of 3\r2 of 3\r\x1b[0m3 of 3\x08!\nnext\r\x1b[Klast 😀";
  const tail = new TextTail();
  for (const piece of text.split("")) tail.push(piece);
  expect(tail.text).toBe(terminalText(text));
});

test("however much is printed, the end is kept, and the number of characters before it", () => {
  const tail = new TextTail();
  let printed = 0;
  for (let n = 0; n < 300; n++) {
    const line = `line ${n} ${"x".repeat(1000)}\n`;
    tail.push(line);
    printed += line.length;
  }
  expect(tail.text.length).toBeLessThanOrEqual(64_000);
  expect(tail.text.endsWith(`line 299 ${"x".repeat(1000)}\n`)).toBe(true);
  expect(tail.left + tail.text.length).toBe(printed);
});

test("one piece of any size is held in part", () => {
  const tail = TextTail.of(`${"a".repeat(1_000_000)}END`);
  expect(tail.text).toHaveLength(64_000);
  expect(tail.text.endsWith("aEND")).toBe(true);
  expect(tail.left).toBe(1_000_003 - 64_000);
});
