// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import { address } from "../api/client";
import type { Summary } from "../api/records";
import { setParameters } from "../router";
import { annotationsOf, currentFilter, filterNames, tagsOf } from "./executions_filter";

beforeEach(() => setParameters(Object.fromEntries([...filterNames, "order"].map((name) => [name, ""]))));

const tagged = (tags?: Record<string, string>) => ({ status: "completed", ...(tags && { tags }) }) as Summary;

test("a text has the tags that a filter wants; a value may have spaces and colons", () => {
  expect(tagsOf(" team:risk  ticket:OPS-12 ")).toEqual(["team:risk", "ticket:OPS-12"]);
  expect(tagsOf("title:a title owner:x:y")).toEqual(["title:a title", "owner:x:y"]);
  expect(tagsOf(" ")).toEqual([]);
});

test("the service and the page select the executions that have all tags", () => {
  setParameters({ tag: "team:risk ticket:OPS-12" });
  const { query, matches } = currentFilter();
  expect(address("/executions", query)).toBe("/executions?tag=team%3Arisk&tag=ticket%3AOPS-12&work=true");
  expect(matches!(tagged({ team: "risk", ticket: "OPS-12", more: "" }))).toBe(true);
  expect(matches!(tagged({ team: "risk", ticket: "OPS-1" }))).toBe(false);
  expect(matches!(tagged({ team: "risk" }))).toBe(false);
  expect(matches!(tagged())).toBe(false);
  setParameters({ tag: "constructor:" });
  expect(currentFilter().matches!(tagged({}))).toBe(false);
  setParameters({ tag: "" });
  expect(currentFilter().matches!(tagged())).toBe(true);
});

test("a new execution is in the list if each field of the filter has its value", () => {
  const e = { user_id: "ada", status: "failed", kind: "debug", sandbox_id: "s1" } as Summary;
  setParameters({ user: "ada", status: "failed", kind: "debug", sandbox: "s1" });
  expect(address("/executions", currentFilter().query)).toBe(
    "/executions?user_id=ada&status=failed&kind=debug&sandbox_id=s1",
  );
  expect(currentFilter().matches!(e)).toBe(true);
  for (const name of ["user_id", "status", "kind", "sandbox_id"])
    expect(currentFilter().matches!({ ...e, [name]: "another" }), name).toBe(false);
  setParameters({ user: "", status: "", kind: "", sandbox: "" });
  expect(currentFilter().matches!(e)).toBe(true);
});

test("the annotations of an execution link to the executions that have them", () => {
  const tags = { team: "risk", empty: "" };
  expect(annotationsOf({ tags })).toEqual([
    { label: "Tag team", text: "risk", query: { tag: "team:risk" } },
    { label: "Tag empty", text: "", query: { tag: "empty:" } },
  ]);
  expect(annotationsOf({})).toEqual([]);
});

test("a list has work only, unless the address asks for replays, and knows what it leaves out", () => {
  const run = { user_id: "ada", status: "completed", kind: "execute" } as Summary;
  const others = [
    { ...run, kind: "replay" },
    { ...run, kind: "database-query", is_explanation: true },
  ] as Summary[];
  for (const [parameters, isShown] of [
    [{}, false],
    [{ replays: "shown" }, true],
    [{ sandbox: "" }, false],
  ] as const) {
    setParameters({ replays: "", ...parameters });
    const { query, matches, leavesOut } = currentFilter();
    expect(query["work"]).toBe(isShown ? "" : "true");
    expect([run, ...others].map(matches!)).toEqual([true, isShown, isShown]);
    expect([run, ...others].map(leavesOut)).toEqual([false, !isShown, !isShown]);
  }
  setParameters({ replays: "", kind: "replay" });
  expect(currentFilter().query["work"]).toBe("");
  expect(currentFilter().matches!(others[0]!)).toBe(true);
  setParameters({ kind: "", user: "eve" });
  expect(currentFilter().leavesOut(others[0]!)).toBe(false);
  setParameters({ user: "" });
});
