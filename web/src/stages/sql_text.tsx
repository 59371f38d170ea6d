import { isKeyword } from "../parts/sql";

const more = new Set(
  (
    "by over partition with recursive as is exists between like ilike filter rows range count sum avg min max " +
    "coalesce nulls first last interval values except intersect"
  ).split(" "),
);
const lexeme = /(--.*$)|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(:?:?[\p{L}_][\p{L}\p{N}_]*)|(\d[\d.]*)/gu;

// SQLText shows a line of SQL with its keywords, texts, numbers and comments in the colours of code.
export function SQLText({ text }: { text: string }) {
  const parts: (string | preact.JSX.Element)[] = [];
  let at = 0;
  for (const match of text.matchAll(lexeme)) {
    const [all, comment, quoted, , word, number] = match;
    const isWord = word !== undefined && (isKeyword(word) || more.has(word.toLowerCase()));
    const look = comment ? "comment" : quoted ? "string" : number ? "number" : isWord ? "keyword" : "";
    if (!look) continue;
    parts.push(text.slice(at, match.index));
    parts.push(
      <span key={match.index} class={`sql-${look}`}>
        {all}
      </span>,
    );
    at = match.index + all.length;
  }
  return (
    <>
      {parts}
      {text.slice(at)}
    </>
  );
}
