import type { WritePreview } from "../api/records";

// withChanges returns a row with what a write changes in it: the column "new NAME" has the new value of NAME.
export function withChanges({ before, after }: WritePreview["rows"][number]): Record<string, unknown> {
  if (!before || !after) return before ?? after ?? {};
  const isChanged = (name: string) => JSON.stringify(before[name]) !== JSON.stringify(after[name]);
  const changes = Object.keys(after)
    .filter(isChanged)
    .map((name) => [`new ${name}`, after[name]]);
  return { ...before, ...Object.fromEntries(changes) };
}

// changesFirst puts the columns that an UPDATE sets next to their new values, behind the first column, which is mostly
// the key.
export function changesFirst(columns: string[]): string[] {
  const changed = columns.filter((name) => columns.includes(`new ${name}`)).flatMap((name) => [name, `new ${name}`]);
  return [...new Set([...columns.slice(0, 1), ...changed, ...columns])];
}
