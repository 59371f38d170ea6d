import { get } from "../api/client";
import type { Key, Sandbox, Statement, Summary } from "../api/records";
import { ago, own, shortID, titleOf } from "../format";
import { sandboxAddress } from "../parts/label";
import { isAdmin, mayDebug } from "../session";
import { entries } from "../shell";
import { sessionTitle } from "./executions_sessions";

export interface Found {
  group: string;
  title: string;
  note: string;
  href: string;
}

const perGroup = 6;

const has = (text: string, ...of: string[]) => of.some((each) => each.toLowerCase().includes(text.toLowerCase()));

// pages returns the pages whose name has a text.
export function pages(text: string): Found[] {
  return [...entries, { path: "", name: "API", icon: "" }]
    .filter((entry) => (!entry.admin || isAdmin.value) && (!entry.debug || mayDebug.value) && has(text, entry.name))
    .map(({ path, name }) => ({ group: "Pages", title: name, note: "", href: path ? `/ui${path}` : "/docs" }));
}

type Source = (text: string, signal: AbortSignal) => Promise<Found[]>;

const executions: Source = async (text, signal) =>
  (await get<{ executions: Summary[] }>("/executions", { text, limit: perGroup }, signal)).executions.map((e) => ({
    group: "Runs",
    title: titleOf(e) || "no code",
    note: `${e.status}, ${e.user_id}, ${ago(e.created_at)}`,
    href: `/ui/executions/${encodeURIComponent(e.execution_id)}`,
  }));

const statements: Source = async (text, signal) =>
  (await get<{ statements: Statement[] | null }>("/statements", { text, limit: perGroup }, signal)).statements?.map(
    (s) => ({
      group: "Statements",
      title: s.query.replace(/\s+/g, " ").trim(),
      note: `${s.status}, ${s.user_id}, ${ago(s.started_at)}`,
      href: `/ui/executions/${encodeURIComponent(s.execution_id)}`,
    }),
  ) ?? [];

const sessions: Source = async (text, signal) =>
  (await get<{ sandboxes: Sandbox[] }>("/sandboxes", { limit: 200 }, signal)).sandboxes
    .filter((s) => has(text, sessionTitle(s), s.sandbox_id))
    .slice(0, perGroup)
    .map((s) => ({
      group: "Sessions (of the newest 200)",
      title: sessionTitle(s),
      note: `${s.status}, ${s.user_id}, ${shortID(s.sandbox_id)}`,
      href: sandboxAddress(s.sandbox_id),
    }));

const keys: Source = async (text, signal) =>
  (await get<{ keys: Key[] | null }>("/keys", {}, signal)).keys
    ?.filter((key) => has(text, key.name, key.user_id))
    .slice(0, perGroup)
    .map((key) => ({ group: "Keys", title: key.name, note: `${key.role} of ${key.user_id}`, href: "/ui/keys" })) ?? [];

const tables: Source = async (text, signal) => {
  const { schema } = await get<{ schema: { tables: string[]; schema: Record<string, { column_name: string }[]> } }>(
    "/database/schema",
    {},
    signal,
  );
  return schema.tables
    .map((name) => ({ name, columns: (own(schema.schema, name) ?? []).map((column) => column.column_name) }))
    .filter(({ name, columns }) => has(text, name, ...columns))
    .slice(0, perGroup)
    .map(({ name, columns }) => ({
      group: "Tables",
      title: name,
      note: columns.join(", "),
      href: "/ui/play?panel=schema",
    }));
};

// search asks all sources, and tells what is found as soon as a source answers, in the order of the sources. A source that
// fails finds nothing.
export async function search(text: string, signal: AbortSignal, found: (list: Found[]) => void): Promise<void> {
  const answers: Found[][] = [];
  const take = async (source: Source, index: number) => {
    answers[index] = await source(text, signal).catch(() => []);
    if (!signal.aborted) found(answers.flat());
  };
  await Promise.all([executions, sessions, statements, tables, keys].map(take));
}
