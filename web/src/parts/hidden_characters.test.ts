import { createElement, Fragment, options } from "preact";
import { afterAll, beforeAll, expect, test } from "vitest";
import { showHiddenCharacters, visible } from "./hidden_characters";

const { vnode } = options;
beforeAll(showHiddenCharacters);
afterAll(() => {
  if (vnode) options.vnode = vnode;
  else delete options.vnode;
});

// textOf returns what a person reads of an element.
function textOf(child: unknown): string {
  if (Array.isArray(child)) return child.map(textOf).join("");
  if (typeof child === "object" && child !== null)
    return textOf((child as { props: { children: unknown } }).props.children);
  return child === null || child === undefined || typeof child === "boolean" ? "" : String(child);
}

test("a character that turns the text around is shown by its number", () => {
  expect(visible("invoice\u202efdp.exe")).toBe("invoice[U+202E]fdp.exe");
  expect(visible("שלום, world")).toBe("שלום, world");
});

test("every element shows it, without a page that thinks of it", () => {
  const element = createElement("code", null, "a\u2066b", createElement("b", null, "c"));
  expect(textOf(element)).toBe("aU+2066bc");
  expect(textOf(createElement(Fragment, null, ["x", "\u200f"]))).toBe("xU+200F");
});

test("elements of text only, and attributes that are read, have it as text", () => {
  const option = createElement("option", { title: "t\u202et" }, "a\u202eb");
  expect(option.props.children).toBe("a[U+202E]b");
  expect(option.props).toMatchObject({ title: "t[U+202E]t" });
});

test("a value of a program is left alone", () => {
  const input = createElement("input", { value: "a\u202eb" });
  expect(input.props.value).toBe("a\u202eb");
});
