import { type ComponentChild, createElement, Fragment, options, type VNode } from "preact";

// Characters that change the direction of text have no shape of their own. With them, code and names of files can look
// different from what they are. The pages show them by their number.

const directions = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069";
const one = new RegExp(`[${directions}]`);
const all = new RegExp(`[${directions}]`, "g");

// shownCharacters are those that CodeMirror does not show by itself.
export const shownCharacters = /[\u202a-\u202c\u2068]/g;

const numberOf = (character: string) => "U+" + character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");

// visible returns a text in which the numbers of such characters stand in their place, for anything but an element.
export function visible(text: string): string {
  return one.test(text) ? text.replace(all, (character) => `[${numberOf(character)}]`) : text;
}

function shown(text: string): ComponentChild[] {
  return text
    .split(new RegExp(`([${directions}])`))
    .map((part) =>
      one.test(part)
        ? createElement(
            "span",
            { class: "hidden-character", title: "This character changes the direction of the text" },
            numberOf(part),
          )
        : part,
    );
}

// Elements whose content is text only.
const textOnly = new Set(["option", "textarea", "title", "style", "script"]);
const textAttributes = ["title", "aria-label", "alt", "placeholder"];

function replace(child: unknown, toText: boolean): unknown {
  if (typeof child === "string") return !one.test(child) ? child : toText ? visible(child) : shown(child);
  if (!Array.isArray(child)) return child;
  let made: unknown[] | undefined;
  for (const [index, item] of child.entries()) {
    const replaced = replace(item, toText);
    if (replaced === item) continue;
    made ??= [...child];
    made[index] = replaced;
  }
  return made ?? child;
}

// showHiddenCharacters applies to every element that is made after it, so that no page has to think of it.
export function showHiddenCharacters(): void {
  const before = options.vnode;
  options.vnode = (node: VNode) => {
    if (typeof node.type === "string" || node.type === Fragment) {
      const props = node.props as Record<string, unknown>;
      props["children"] = replace(props["children"], textOnly.has(String(node.type)));
      if (typeof node.type === "string") {
        for (const name of textAttributes) {
          if (typeof props[name] === "string") props[name] = visible(props[name]);
        }
      }
    }
    before?.(node);
  };
}
