// The variables that a program prints, which its reader asks for.

const call = /^\s*(?:print|display)\s*\((.*)/;
const text = /(?<![\p{L}\p{N}_])([a-z]{0,2})("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/giu;
const word = /(?<![\p{L}\p{N}_.])[\p{L}_][\p{L}\p{N}_]*(?!\s*=[^=])/gu;

// printedNames returns the variables in the lines that print, those of the last line first. Names that the program does not
// set, such as those of functions, are left out.
export function printedNames(code: string): string[] {
  const set = namesSet(code);
  const lines = code.split("\n").map((line) => call.exec(line)?.[1] ?? "");
  const names = lines.reverse().flatMap((line) => withoutTexts(line).match(word) ?? []);
  return [...new Set(names)].filter((name) => set.has(name));
}

// withoutTexts removes the texts of a line, but not what formatted texts put in.
function withoutTexts(line: string): string {
  return line
    .replace(text, (_, prefix: string, quoted: string) =>
      /f/i.test(prefix) ? ` ${[...quoted.matchAll(/\{([^{}:!]+)/g)].map(([, inner]) => inner).join(" ")} ` : " ",
    )
    .replace(/#.*$/, "");
}

// namesSet returns the variables that lines outside of functions set.
function namesSet(code: string): Set<string> {
  const names = new Set<string>();
  let function_ = -1; // the indentation of the function that the line is in, or -1
  for (const line of code.split("\n")) {
    if (!line.trim()) continue;
    const indentation = line.search(/\S/);
    if (function_ >= 0 && indentation > function_) continue;
    function_ = /^\s*(async\s+)?(def|class)\b/.test(line) ? indentation : -1;
    const left =
      /^\s*([\p{L}\p{N}_,\s]+?)\s*(?::[^=]+)?(?:[-+*/%@&|^]|\/\/|\*\*|<<|>>)?=(?!=)/u.exec(line)?.[1] ??
      /^\s*(?:async\s+)?for\s+(.+?)\s+in\b/.exec(line)?.[1] ??
      "";
    for (const [name] of left.matchAll(/[\p{L}_][\p{L}\p{N}_]*/gu)) names.add(name);
  }
  return names;
}
