import { type ComponentChild, render } from "preact";
import { act } from "preact/test-utils";

// draw shows an element in an empty document, and returns where it is.
export function draw(element: ComponentChild): HTMLElement {
  document.body.innerHTML = "<main></main>";
  const main = document.body.querySelector("main")!;
  void act(() => render(element, main));
  return main;
}

// leave removes what draw has shown, with its listeners.
export function leave(): void {
  const main = document.body.querySelector("main");
  if (main) void act(() => render(null, main));
}

// press presses a key, and reports whether the page took it.
export function press(key: string, init: KeyboardEventInit = {}, target: EventTarget = document.body): boolean {
  const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...init });
  void act(() => void target.dispatchEvent(event));
  return event.defaultPrevented;
}

// type writes a text into a field.
export function type(field: HTMLInputElement, text: string): void {
  field.value = text;
  void act(() => void field.dispatchEvent(new Event("input", { bubbles: true })));
}
