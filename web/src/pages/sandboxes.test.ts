// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { statusQuery } from "./sandboxes";

test("the list has the live sandboxes unless the address asks for others", () => {
  expect(statusQuery("")).toBe("active");
  expect(statusQuery("active")).toBe("active");
  expect(statusQuery("any")).toBe("");
  expect(statusQuery("deleted")).toBe("deleted");
});
