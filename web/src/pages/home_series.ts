import type { Activity, Totals } from "../api/records";
import { dateTime, duration } from "../format";

const hour = 3_600_000; // milliseconds

export interface Bar extends Totals {
  at: number; // the beginning, in milliseconds
}

// series returns the sums for each part of a time, also for those without executions. A part is a number of hours; the
// last one has now.
export function series(hours: Activity["hours"], since: number, now: number, step: number): Bar[] {
  const width = step * hour;
  const bars: Bar[] = [];
  for (let at = since; at <= now; at += width) bars.push({ at, executions: 0, failed: 0, rows_read: 0, cpu_ms: 0 });
  for (const each of hours ?? []) {
    const bar = bars[Math.floor((Date.parse(each.hour) - since) / width)];
    if (!bar) continue;
    bar.executions += each.executions;
    bar.failed += each.failed;
    bar.rows_read += each.rows_read;
    bar.cpu_ms += each.cpu_ms;
  }
  return bars;
}

export interface KeyCosts {
  name: string;
  total: number; // milliseconds of CPU time
  days: number[]; // as days below
}

const maxKeys = 5; // with a colour of their own

// costs returns the CPU time of each key by day. The keys that used less are one.
export function costs(keys: Activity["keys"]): { days: string[]; keys: KeyCosts[] } {
  const days = [...new Set((keys ?? []).map(({ day }) => day))].sort();
  const byKey = new Map<string, KeyCosts>();
  for (const { key_id: id, name, user_id: user, day, cpu_ms: used } of keys ?? []) {
    const label = name ? `${user}, “${name}”` : `deleted key ${id.slice(0, 8)}`;
    const key = byKey.get(id) ?? { name: label, total: 0, days: days.map(() => 0) };
    key.total += used;
    key.days[days.indexOf(day)]! += used;
    byKey.set(id, key);
  }
  const sorted = [...byKey.values()].sort((a, b) => b.total - a.total);
  const others = sorted.splice(maxKeys);
  if (others.length > 0)
    sorted.push({
      name: `${others.length} other ${others.length === 1 ? "key" : "keys"}`,
      total: others.reduce((sum, key) => sum + key.total, 0),
      days: days.map((_, n) => others.reduce((sum, key) => sum + key.days[n]!, 0)),
    });
  return { days, keys: sorted };
}

// whyOtherTotal says why the CPU time of keys is not that of the runs since a time, or "" if both are the same.
export function whyOtherTotal(keys: number, runs: number, since: string): string {
  if (duration(keys) === duration(runs)) return "";
  return (
    `The CPU time of the runs, ${duration(runs)}, is from ${dateTime(since).slice(0, 16)} on. ` +
    "Keys count by whole days in UTC, each run in whole milliseconds, and runs that were erased, replays and looks, too."
  );
}
