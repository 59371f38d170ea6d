// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { address } from "../api/client";
import type { Summary } from "../api/records";
import { setParameters } from "../router";
import { annotationsOf, currentFilter, tagsOf } from "./executions_filter";

const tagged = (tags?: Record<string, string>) => ({ status: "completed", ...(tags && { tags }) }) as Summary;

test("a text has the tags that a filter wants; a value may have spaces and colons", () => {
  expect(tagsOf(" team:risk  ticket:OPS-12 ")).toEqual(["team:risk", "ticket:OPS-12"]);
  expect(tagsOf("title:a title owner:x:y")).toEqual(["title:a title", "owner:x:y"]);
  expect(tagsOf(" ")).toEqual([]);
});

test("the service and the page select the executions that have all tags", () => {
  setParameters({ tag: "team:risk ticket:OPS-12" });
  const { query, matches } = currentFilter();
  expect(address("/executions", query)).toBe("/executions?tag=team%3Arisk&tag=ticket%3AOPS-12");
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
