import { expect, test } from "vitest";
import { changesFirst, withChanges } from "./writes_changes";

test("an updated row has its old values, and the new ones of what changes", () => {
  const before = { id: 1, city: "Rome", tags: ["a"], note: null, data: { x: [1] } };
  const after = { id: 1, city: "Paris", tags: ["a", "b"], note: null, data: { x: [1] } };
  expect(withChanges({ before, after })).toEqual({ ...before, "new city": "Paris", "new tags": ["a", "b"] });
});

test("an inserted row and a deleted row are shown as they are", () => {
  expect(withChanges({ before: null, after: { id: 2 } })).toEqual({ id: 2 });
  expect(withChanges({ before: { id: 3 }, after: null })).toEqual({ id: 3 });
});

test("new values stand next to the old ones, behind the first column", () => {
  expect(changesFirst(["id", "name", "city", "new city"])).toEqual(["id", "city", "new city", "name"]);
  expect(changesFirst(["city", "name", "new city"])).toEqual(["city", "new city", "name"]);
  expect(changesFirst(["id", "name"])).toEqual(["id", "name"]);
  expect(changesFirst([])).toEqual([]);
});
