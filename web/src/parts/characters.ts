// characters returns a position as Python counts it, and units one as JavaScript does: a character beyond the first
// 65 536 has two units.
export function characters(text: string, units: number): number {
  let count = 0;
  for (let at = 0; at < units; count++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return count;
}

export function units(text: string, characters: number): number {
  let at = 0;
  for (; characters > 0 && at < text.length; characters--) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return at;
}
