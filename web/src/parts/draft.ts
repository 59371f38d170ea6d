import { me } from "../session";

// A draft is text that is not sent yet. It survives a reload, in this tab and for this user only.
const keyOf = (name: string) => `draft-${name}-${me.value?.user_id}`;

// readDraft returns "" if there is none.
export function readDraft(name: string): string {
  try {
    return sessionStorage.getItem(keyOf(name)) ?? "";
  } catch {
    return ""; // the browser keeps nothing
  }
}

// writeDraft keeps a text; "" removes it.
export function writeDraft(name: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(keyOf(name), text);
    else sessionStorage.removeItem(keyOf(name));
  } catch {
    // the browser keeps nothing, or the text is too large for it
  }
}
