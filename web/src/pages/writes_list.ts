import { useEffect, useRef } from "preact/hooks";
import { get } from "../api/client";
import type { PendingWrite } from "../api/records";
import type { List } from "../parts/list";

const newsInterval = 5_000; // milliseconds between two looks for new writes
const newsSize = 100; // writes of a look

export const isOpen = ({ status }: PendingWrite) =>
  status === "pending" || status === "applying" || status === "unknown";

// merged returns the rows with what a look has found: their new states, and behind them the writes that they do not have,
// the oldest first. So nothing moves where a person may be about to click. It returns the same rows if nothing is new.
export function merged(rows: PendingWrite[], found: PendingWrite[]): PendingWrite[] {
  const latest = new Map(found.map((write) => [write.id, write]));
  const isChanged = rows.some((row) => (latest.get(row.id)?.status ?? row.status) !== row.status);
  const known = isChanged ? rows.map((row) => latest.get(row.id) ?? row) : rows;
  for (const row of rows) latest.delete(row.id);
  return latest.size > 0 ? [...known, ...[...latest.values()].reverse()] : known;
}

// useNews takes up new writes and decisions while a list is shown.
export function useNews(list: List<PendingWrite>, query: Record<string, string>): void {
  const current = useRef(list);
  current.current = list;
  const key = JSON.stringify([query, list.isLoading, list.problem?.status]);
  useEffect(() => {
    if (list.isLoading || list.problem) return;
    const request = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        if (!document.hidden) {
          const answer = await get<{ pending_writes: PendingWrite[] | null }>(
            "/pending-writes",
            { ...query, limit: newsSize },
            request.signal,
          );
          const { rows, set } = current.current;
          const next = merged(rows, answer.pending_writes ?? []);
          if (next !== rows) set(next);
        }
      } catch {
        // the next look may succeed
      }
      if (!request.signal.aborted) timer = window.setTimeout(look, newsInterval);
    };
    timer = window.setTimeout(look, newsInterval);
    return () => {
      window.clearTimeout(timer);
      request.abort();
    };
  }, [key]);
}
