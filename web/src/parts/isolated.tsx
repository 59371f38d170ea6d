import type { ComponentChildren } from "preact";

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const jsonString = /("(?:[^"\\]|\\.)*")/;

// isolated returns a JSON text with its strings isolated if one is written from right to left: otherwise a key and a value
// that are would change places.
export function isolated(text: string): ComponentChildren {
  if (!rightToLeft.test(text)) return text;
  return text.split(jsonString).map((part, index) => (index % 2 ? <bdi key={index}>{part}</bdi> : part));
}
