import type { ComponentChildren } from "preact";

// Prose shows text that a language model wrote, with the Markdown that models use most. It makes elements, never HTML:
// text of a database can end up in an answer. Links and pictures stay text, so nothing is loaded and nothing is opened.

type Block =
  | { kind: "code"; text: string; language: string }
  | { kind: "list"; ordered: boolean; start: number; items: string[] }
  | { kind: "table"; rows: string[][]; isNumber: boolean[] }
  | { kind: "heading" | "paragraph" | "quote"; text: string };

const bullet = /^\s{0,8}[-*+]\s+(.*)$/;
const numbered = /^\s{0,8}(\d{1,6})[.)]\s+(.*)$/;
const quote = /^\s{0,3}>\s?(.*)$/;
const fence = /^\s{0,3}(`{3,}|~{3,})\s*([\w+-]*)/;
const ruleCell = /^:?-+:?$/;

// Some patterns take a time that grows with the square of a text's length. No person reads such a text.
const maxMarkedChars = 50_000;

function cells(line: string): string[] {
  return line
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => cell.trim());
}

const isRule = (line = "") => cells(line).every((cell) => ruleCell.test(cell));

// blocks splits a text into its blocks. Every line ends up in one of them.
function blocks(text: string): Block[] {
  if (text.length > maxMarkedChars) return [{ kind: "code", text, language: "" }];
  const lines = text.split("\n");
  const found: Block[] = [];
  let paragraph: string[] = [];
  const endParagraph = () => {
    if (paragraph.length > 0) found.push({ kind: "paragraph", text: paragraph.join("\n") });
    paragraph = [];
  };
  for (let n = 0; n < lines.length; n++) {
    const line = lines[n]!;
    const opened = fence.exec(line);
    const item = numbered.exec(line) ?? bullet.exec(line);
    const quoted = quote.exec(line);
    const heading = /^\s{0,3}#{1,6}\s+(.*)$/.exec(line);
    if (opened) {
      endParagraph();
      const code: string[] = [];
      for (n++; n < lines.length && !lines[n]!.trim().startsWith(opened[1]!); n++) code.push(lines[n]!);
      found.push({ kind: "code", text: code.join("\n"), language: opened[2] ?? "" });
    } else if (heading) {
      endParagraph();
      found.push({ kind: "heading", text: heading[1]! });
    } else if (line.includes("|") && isRule(lines[n + 1]) && (lines[n + 1] ?? "").includes("-")) {
      endParagraph();
      const rows = [cells(line)];
      const isNumber = cells(lines[n + 1]!).map((cell) => /^-.*:$/.test(cell)); // aligned to the right
      for (n += 2; n < lines.length && lines[n]!.includes("|"); n++) rows.push(cells(lines[n]!));
      n--;
      found.push({ kind: "table", rows, isNumber });
    } else if (item) {
      endParagraph();
      const ordered = item.length === 3;
      const last = found.at(-1);
      if (last?.kind === "list" && last.ordered === ordered) last.items.push(item.at(-1)!);
      else found.push({ kind: "list", ordered, start: ordered ? Number(item[1]) : 1, items: [item.at(-1)!] });
    } else if (quoted) {
      endParagraph();
      const last = found.at(-1);
      if (last?.kind === "quote" && quote.test(lines[n - 1] ?? "")) last.text += "\n" + quoted[1]!;
      else found.push({ kind: "quote", text: quoted[1]! });
    } else if (line.trim() === "") {
      endParagraph();
    } else {
      const last = found.at(-1);
      if (paragraph.length === 0 && last?.kind === "list" && /^\s{2,}/.test(line))
        last.items.push(last.items.pop() + "\n" + line.trim());
      else paragraph.push(line);
    }
  }
  endParagraph();
  return found;
}

const ticks = /`+/g;
const emphasis = /\*\*(\S(?:.*?\S)?)\*\*|(?<![\w*])\*(\S(?:[^*]*?\S)?)\*(?![\w*])/gs;
const maxEmphasisChars = 5000; // between two pieces of code

// inline returns a text with its code and its emphasis.
function inline(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  // As in CommonMark, code ends at the next run of as many backticks as begin it.
  const runs = [...text.matchAll(ticks)];
  const next = new Map<number, number>(); // by the length of a run: the next run that has it
  const closing = runs.map(() => -1);
  for (let n = runs.length - 1; n >= 0; n--) {
    const length = runs[n]![0].length;
    closing[n] = next.get(length) ?? -1;
    next.set(length, n);
  }
  let from = 0;
  for (let n = 0; n < runs.length; n++) {
    const end = runs[closing[n]!];
    if (!end) continue;
    const begin = runs[n]!.index + runs[n]![0].length;
    out.push(...emphasized(text.slice(from, runs[n]!.index)), <code>{text.slice(begin, end.index)}</code>);
    from = end.index + end[0].length;
    n = closing[n]!;
  }
  out.push(...emphasized(text.slice(from)));
  return out;
}

function emphasized(text: string): ComponentChildren[] {
  if (text.length > maxEmphasisChars) return [text];
  const out: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(emphasis)) {
    out.push(text.slice(from, match.index));
    out.push(match[1] !== undefined ? <strong>{match[1]}</strong> : <em>{match[2]}</em>);
    from = match.index + match[0].length;
  }
  out.push(text.slice(from));
  return out;
}

function Shown({ block }: { block: Block }) {
  switch (block.kind) {
    case "code":
      return (
        <pre class="text" tabIndex={0} role="group" aria-label={`Code ${block.language}`}>
          {block.text}
        </pre>
      );
    case "quote":
      return (
        <blockquote>
          <p>{inline(block.text)}</p>
        </blockquote>
      );
    case "heading":
      return (
        <p>
          <strong>{inline(block.text)}</strong>
        </p>
      );
    case "list": {
      const items = block.items.map((item, index) => <li key={index}>{inline(item)}</li>);
      return block.ordered ? <ol start={block.start}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table": {
      const numbers = (column: number) => (block.isNumber[column] ? "number" : "");
      return (
        <div class="scroll-x" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>
                {block.rows[0]!.map((cell, index) => (
                  <th key={index} scope="col" class={numbers(index)}>
                    {inline(cell)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.slice(1).map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column} class={numbers(column)}>
                      {inline(cell)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    }
    default:
      return <p>{inline(block.text)}</p>;
  }
}

export function Prose({ text }: { text: string }) {
  return (
    <div class="prose">
      {blocks(text).map((block, index) => (
        <Shown key={index} block={block} />
      ))}
    </div>
  );
}
