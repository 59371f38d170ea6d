import { expect, test } from "vitest";
import { settle } from "../testing/service";
import type { Cell } from "./cell";
import { columnsBetween, offsets, rowHeight, VerticalScale } from "./layout";
import { GridModel } from "./model";
import type { Page, Source } from "./source";
import { everything } from "./view";

// table is a source with a million rows, which answers when the test lets it, with at most 150 rows.
function table() {
  const asked: number[] = [];
  const waiting: (() => void)[] = [];
  const source: Source = {
    rows: (_view, start, count) =>
      new Promise<Page>((resolve) => {
        asked.push(start);
        const rows: Cell[][] = Array.from({ length: Math.min(count, 150, 1_000_000 - start) }, (_, n) => [start + n]);
        const columns = [{ name: "n", type: "", kind: "number" as const }];
        const page = { columns, total_columns: 1, total: 1_000_000, matching: 1_000_000, start, numbers: [], rows };
        waiting.push(() => resolve(page));
      }),
    cell: () => null,
    stats: () => ({ count: 0, missing: 0, distinct: 0 }),
  };
  const answer = async () => {
    waiting.shift()?.();
    await settle();
  };
  return { source, asked, answer };
}

test("the rows that are seen are loaded, and not those that one scrolled past", async () => {
  const { source, asked, answer } = table();
  const model = new GridModel(source);
  model.show(0, 20);
  await answer();
  expect(model.row(20)).toEqual([20]);
  for (let at = 1000; at <= 900_000; at += 1000) model.show(at, at + 20);
  await answer();
  await answer();
  expect(model.row(900_000)).toEqual([900_000]);
  expect(asked.length).toBeLessThan(5);
});

test("a model keeps few of the rows", async () => {
  const { source, answer } = table();
  const model = new GridModel(source);
  for (let at = 0; at < 30_000; at += 100) {
    model.show(at, at + 20);
    await answer();
  }
  const kept = Array.from({ length: 30_000 }, (_, n) => model.row(n)).filter(Boolean).length;
  expect(kept).toBeLessThanOrEqual(6200);
  model.show(0, 20);
  await answer();
  expect(model.row(0)).toEqual([0]);
});

test("another view begins with its first rows", async () => {
  const { source, answer } = table();
  const model = new GridModel(source);
  model.show(5000, 5020);
  await answer();
  model.setView({ ...everything, sort: { column: 0, descending: true } });
  expect(model.row(5000)).toBeUndefined();
  await answer(); // to the request of the former view
  expect(model.row(5050)).toBeUndefined();
  await answer();
  expect(model.row(0)).toEqual([0]);
});

test("a million rows are reached by the scroll bar, to the last one", () => {
  const viewport = 480;
  const scale = new VerticalScale(1_000_000 * rowHeight, viewport);
  expect(scale.height).toBeLessThan(16_000_000);
  expect(scale.top(scale.height - viewport)).toBeCloseTo(1_000_000 * rowHeight - viewport, 3);
  for (const top of [0, 140_000, 27_000_000]) expect(scale.top(scale.scrollTop(top))).toBeCloseTo(top, 3);
  const small = new VerticalScale(1000, viewport);
  expect(small.top(300)).toBe(300);
});

test("the columns in a range of pixels", () => {
  const starts = offsets([100, 50, 200, 80]);
  expect(columnsBetween(starts, 0, 90)).toEqual([0, 0]);
  expect(columnsBetween(starts, 120, 360)).toEqual([1, 3]);
  expect(columnsBetween(offsets([]), 0, 100)).toEqual([0, 0]);
});
