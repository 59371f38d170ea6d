// Names of tables and columns in SQL, and which of them fit at a cursor.

export interface Column {
  column_name: string;
  data_type: string;
  is_nullable: string;
  comment: string | null;
  primary_key: boolean;
  references: string | null;
  masked: boolean;
}

// Schema has the tables that code may read, with their names as a statement writes them: in double quotes if they need
// them, and after the name of their schema if the search path does not find them or two tables have the name.
export interface Schema {
  tables: string[];
  schema: Record<string, Column[]>;
  details: Record<string, { table_type: string; comment: string | null; row_estimate: number | null }>;
}

export const maskNote = "A query may select it, as ***, and not use it in any other way";

// Words that PostgreSQL reads as names only if they are quoted.
const reserved = new Set(
  (
    "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create " +
    "current_date current_role current_time current_timestamp current_user default deferrable desc distinct do else end except false fetch " +
    "for foreign from grant group having in initially intersect into lateral leading limit localtime localtimestamp not null offset on only " +
    "or order placing primary references returning select session_user some symmetric table then to trailing true union unique user using " +
    "variadic when where window with"
  ).split(" "),
);

// Words that end a table of FROM and its alias, in addition to the reserved ones.
const joins = new Set("cross full inner join left natural right tablesample".split(" "));

// Words after which there is no table any more.
const clauses = new Set(
  (
    "select where on using group order having limit offset fetch for window union intersect except returning set " +
    "values"
  ).split(" "),
);

// sqlName returns a name as a statement has to write it.
export function sqlName(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !reserved.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

// plainName returns the name of a table of a Schema without quotes, as PostgreSQL reads it.
function plainName(table: string): string {
  return table.replace(/"((?:[^"]|"")*)"/gu, (_, name: string) => name.replaceAll('""', '"'));
}

// unqualifiedName returns the name of a table of a Schema without that of its schema.
function unqualifiedName(table: string): string {
  return table.replace(/^(?:"(?:[^"]|"")*"|[^".]+)\./u, "");
}

// isKeyword reports whether a word is complete as it is, so that names which contain its letters are not offered for it.
export function isKeyword(word: string): boolean {
  const lower = word.toLowerCase();
  return reserved.has(lower) || joins.has(lower) || clauses.has(lower);
}

interface Token {
  from: number;
  to: number;
  kind: "name" | "symbol" | "literal";
  text: string; // of a name, as PostgreSQL reads it
  isQuoted: boolean;
}

// A backslash is white space: within a string of Python it stands before a quote.
const lexeme = new RegExp(
  [
    /--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/u, // comments
    /'(?:[^']|'')*(?:'|$)|\$(\w*)\$[\s\S]*?(?:\$\1\$|$)/u,
    /"(?:[^"]|"")*(?:"|$)/u,
    /::?\s*[\p{L}_][\p{L}\p{N}_]*/u, // a cast or a parameter
    /[\p{L}_][\p{L}\p{N}_$]*/u,
    /\d[\w.]*/u,
    /[^\s\\]/u,
  ]
    .map(({ source }) => source)
    .join("|"),
  "gu",
);

function tokens(sql: string): Token[] {
  return [...sql.matchAll(lexeme)].map((match): Token => {
    const [text] = match;
    const at = { from: match.index, to: match.index + text.length, isQuoted: text.startsWith('"') };
    if (at.isQuoted)
      return {
        ...at,
        kind: "name",
        text: text
          .slice(1)
          .replace(/\\?"?$/, "")
          .replaceAll('""', '"'),
      };
    if (/^[\p{L}_]/u.test(text)) return { ...at, kind: "name", text: text.toLowerCase() };
    return { ...at, kind: text.length === 1 && !/\d/.test(text) ? "symbol" : "literal", text };
  });
}

interface Source {
  table: string; // of the schema; "" for another query
  name: string; // by which its columns are qualified
}

// Scope is what stands between two parentheses.
interface Scope {
  sources: Source[];
  isQuery: boolean;
  isFrom: boolean; // in the list of FROM
  wantsTable: boolean;
}

interface Place {
  sources: Source[]; // visible ones, innermost first
  queries: string[]; // names of WITH
  isQuery: boolean;
  isFrom: boolean;
  wantsTable: boolean;
}

// placeOf reads a statement, which need not be complete, and returns what is known at a position.
function placeOf(sql: string, at: number): Place {
  const read = tokens(sql).filter((token) => !/^(--|\/\*)/.test(token.text));
  const scopes: Scope[] = [{ sources: [], isQuery: false, isFrom: false, wantsTable: false }];
  const queries: string[] = [];
  let found: { scopes: Scope[]; isFrom: boolean; wantsTable: boolean } | undefined;
  const look = (position: number) => {
    if (found || position < at) return;
    const { isFrom, wantsTable } = scopes.at(-1)!;
    found = { scopes: [...scopes], isFrom, wantsTable };
  };
  const isWord = (token: Token | undefined, ...words: string[]) =>
    token?.kind === "name" && !token.isQuoted && words.includes(token.text);
  const isName = (token: Token | undefined) => token?.kind === "name" && (token.isQuoted || !isKeyword(token.text));
  for (let n = 0; n < read.length; n++) {
    const token = read[n]!;
    const scope = scopes.at(-1)!;
    look(token.from);
    if (token.kind === "literal") continue;
    if (token.text === "(" && token.kind === "symbol") {
      scope.wantsTable = false;
      scopes.push({ sources: [], isQuery: false, isFrom: false, wantsTable: false });
    } else if (token.text === ")" && token.kind === "symbol") {
      if (scopes.length > 1) scopes.pop();
      const outer = scopes.at(-1)!;
      const named = isWord(read[n + 1], "as") ? read[n + 2] : read[n + 1];
      if (outer.isFrom && isName(named)) outer.sources.push({ table: "", name: named!.text });
    } else if (token.text === ";" && token.kind === "symbol") {
      scopes.splice(0, scopes.length, { sources: [], isQuery: false, isFrom: false, wantsTable: false });
    } else if (token.text === "," && token.kind === "symbol") {
      scope.wantsTable = scope.isFrom;
    } else if (isWord(token, "select", "delete")) {
      Object.assign(scope, { isQuery: true, isFrom: false, wantsTable: false });
    } else if (
      isWord(token, "join", "into", "update") ||
      (isWord(token, "from") && scope.isQuery && !isWord(read[n - 1], "distinct"))
    ) {
      Object.assign(scope, { isQuery: true, isFrom: true, wantsTable: true });
    } else if (token.kind === "name" && !token.isQuoted && clauses.has(token.text)) {
      Object.assign(scope, { isFrom: false, wantsTable: false });
    } else if (isName(token)) {
      if (isWord(read[n + 1], "as") && read[n + 2]?.text === "(") queries.push(token.text);
      if (!scope.wantsTable) continue;
      const parts = [token.text];
      while (read[n + 1]?.text === "." && isName(read[n + 2])) {
        look(read[n + 1]!.from);
        look(read[n + 2]!.from);
        parts.push(read[n + 2]!.text);
        n += 2;
      }
      if (read[n + 1]?.text === ".") continue; // the name of the table is still to come
      scope.wantsTable = false;
      if (read[n + 1]?.text === "(") continue; // a function
      const alias = isWord(read[n + 1], "as") ? read[n + 2] : read[n + 1];
      // The name at the position is not an alias yet.
      const isAlias = isName(alias) && !(alias!.from <= at && at <= alias!.to && !isWord(read[n + 1], "as"));
      scope.sources.push({ table: parts.join("."), name: isAlias ? alias!.text : parts.at(-1)! });
    }
  }
  look(Infinity);
  return {
    sources: found!.scopes.reverse().flatMap((scope) => scope.sources),
    queries,
    isQuery: found!.scopes.some((scope) => scope.isQuery),
    isFrom: found!.isFrom,
    wantsTable: found!.wantsTable,
  };
}

export interface Suggestion {
  text: string; // as a statement has to write it
  kind: "table" | "column" | "alias";
  detail: string;
  info?: string;
}

const maxColumns = 2000; // of all tables, where no table is named yet

// findTable returns the name in the schema of a table that a statement names.
function findTable(schema: Schema, name: string): string | undefined {
  const called = (plain: string) => schema.tables.find((table) => plainName(table) === plain);
  return called(name) ?? (name.startsWith("public.") ? called(name.slice("public.".length)) : called(`public.${name}`));
}

function columnsOf(schema: Schema, table: string, of = ""): Suggestion[] {
  return (schema.schema[table] ?? []).map((column) => ({
    text: sqlName(column.column_name),
    kind: "column",
    detail: (of ? `${of}, ` : "") + column.data_type + (column.masked ? ", masked" : ""),
    info: [column.masked ? maskNote : "", column.comment ?? ""].filter(Boolean).join(". "),
  }));
}

// suggest returns the names that fit at a position of a statement, and where the name begins that they replace. It
// returns undefined where no name is expected, and where a person has typed nothing that calls for one, unless asked.
export function suggest(
  sql: string,
  at: number,
  schema: Schema,
  isAsked: boolean,
): { from: number; list: Suggestion[] } | undefined {
  const read = tokens(sql);
  const under = read.find((token) => token.from < at && at <= token.to);
  if (under?.kind === "literal") return undefined;
  const current = under?.kind === "name" ? under : undefined;
  const from = current ? current.from - (sql[current.from - 1] === "\\" ? 1 : 0) : at;
  if (!isAsked && current && !current.isQuoted && isKeyword(current.text)) return undefined;
  const place = placeOf(sql, from);
  const name = qualifier(read.filter((token) => token.to <= from));
  if (name) {
    const source = place.sources.find((known) => known.name === name);
    const table = source ? findTable(schema, source.table) : findTable(schema, name);
    const inSchema = schema.tables.filter((known) => plainName(known).startsWith(`${name}.`));
    const list = [
      ...(table && !place.wantsTable ? columnsOf(schema, table) : []),
      ...(source ? [] : inSchema.map((known) => ofTable(schema, known, unqualifiedName(known)))),
    ];
    return list.length > 0 ? { from, list } : undefined;
  }
  if (place.wantsTable) {
    return {
      from,
      list: [
        ...place.queries.map((name): Suggestion => ({ text: sqlName(name), kind: "table", detail: "query of WITH" })),
        ...schema.tables.map((table) => ofTable(schema, table, table)),
      ],
    };
  }
  if (place.isFrom || (!isAsked && !(current && place.isQuery))) return undefined; // an alias is chosen by the person
  const known = place.sources.flatMap(({ table, name }) => {
    const found = findTable(schema, table);
    return found ? [{ table: found, name }] : [];
  });
  if (known.length === 0) {
    const list = schema.tables.flatMap((table) => columnsOf(schema, table, table));
    return { from, list: list.slice(0, maxColumns) };
  }
  return {
    from,
    list: [
      ...known.flatMap(({ table, name }) => columnsOf(schema, table, known.length > 1 ? name : "")),
      ...known.map(
        ({ table, name }): Suggestion => ({
          text: sqlName(name),
          kind: "alias",
          detail: name === table ? "table" : `alias of ${table}`,
        }),
      ),
    ],
  };
}

function ofTable(schema: Schema, table: string, text: string): Suggestion {
  const about = schema.details[table];
  return { text, kind: "table", detail: about?.table_type ?? "table", info: about?.comment ?? "" };
}

// qualifier returns the names before a dot at the end, such as "sales.orders", or "".
function qualifier(before: Token[]): string {
  const parts: string[] = [];
  for (let n = before.length - 1; before[n]?.text === "." && before[n - 1]?.kind === "name"; n -= 2)
    parts.unshift(before[n - 1]!.text);
  return parts.join(".");
}
