// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import { navigate, parameter, path, setParameters } from "./router";

beforeEach(() => {
  navigate("/ui/", true);
  document.body.innerHTML = "";
});

test("the path is below /ui", () => {
  expect(path.value).toBe("/");
  navigate("/ui/executions/e-1?x=1");
  expect(path.value).toBe("/executions/e-1");
  expect(window.location.pathname + window.location.search).toBe("/ui/executions/e-1?x=1");
});

test("parameters are values of the address; an empty one is removed", () => {
  setParameters({ status: "failed", user: "a&b" });
  expect(parameter("status")).toBe("failed");
  expect(parameter("user")).toBe("a&b");
  expect(window.location.search).toBe("?status=failed&user=a%26b");
  setParameters({ status: "" });
  expect(parameter("status")).toBe("");
  expect(window.location.search).toBe("?user=a%26b");
  navigate("/ui/");
  expect(parameter("user")).toBe("");
});

test("a replaced address is not a step of the history, and the same address is none either", () => {
  const push = vi.spyOn(history, "pushState");
  const replace = vi.spyOn(history, "replaceState");
  setParameters({ step: "1" });
  setParameters({ step: "1" });
  setParameters({ step: "2" }, true);
  expect(push).toHaveBeenCalledTimes(1);
  expect(replace).toHaveBeenCalledTimes(1);
});

test("the browser's Back shows the address before", () => {
  setParameters({ text: "a" });
  history.replaceState(null, "", "/ui/?text=before");
  window.dispatchEvent(new PopStateEvent("popstate"));
  expect(parameter("text")).toBe("before");
});

function click(html: string, init: MouseEventInit = {}): boolean {
  document.body.innerHTML = html;
  const event = new MouseEvent("click", { bubbles: true, cancelable: true, ...init });
  document.body.querySelector("a *, a")!.dispatchEvent(event);
  const isTaken = event.defaultPrevented;
  return isTaken;
}

test("a click on a link shows the page without loading the document", () => {
  expect(click('<a href="/ui/keys"><b>Keys</b></a>')).toBe(true);
  expect(path.value).toBe("/keys");
});

test.each([
  ["with Ctrl, for another tab", '<a href="/ui/keys">Keys</a>', { ctrlKey: true }],
  ["with Command, for another tab", '<a href="/ui/keys">Keys</a>', { metaKey: true }],
  ["with Shift, for another window", '<a href="/ui/keys">Keys</a>', { shiftKey: true }],
  ["with the middle button", '<a href="/ui/keys">Keys</a>', { button: 1 }],
  ["on a link to another tab", '<a href="/ui/keys" target="_blank">Keys</a>', {}],
  ["on a file", '<a href="/ui/keys" download>Keys</a>', {}],
  ["on another part of the service", '<a href="/docs">API</a>', {}],
  ["on another service", '<a href="http://other.test/ui/keys">Keys</a>', {}],
])("a click %s is the browser's", (_, html, init) => {
  const stopped = (event: Event) => event.preventDefault(); // the browser of the test does not navigate
  let isTaken = true;
  window.addEventListener(
    "click",
    (event) => {
      isTaken = event.defaultPrevented;
      stopped(event);
    },
    { once: true },
  );
  click(html, init);
  expect(isTaken).toBe(false);
  expect(path.value).toBe("/");
});
