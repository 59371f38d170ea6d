// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { navigate, parameter, setParameters } from "../router";
import { draw, leave, press, type } from "../testing/page";
import { Choice, clearFilters, Filters, isFiltered, TextFilter, TimeChoice, timeNames, timeQuery } from "./filters";

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 6, 1, 12) });
  navigate("/ui/", true);
});
afterEach(() => {
  leave();
  vi.useRealTimers();
});

const field = (page: HTMLElement) => page.querySelector<HTMLInputElement>("input[type=search]")!;
const text = () => draw(<TextFilter name="text" label="Text" placeholder="Search" keys="/" />);

test("a range is relative to now; one that nobody knows is none", () => {
  setParameters({ range: "1h" });
  expect(timeQuery()).toEqual({ since: "2026-07-01T11:00:00.000Z", until: "" });
  setParameters({ range: "constructor", since: "2026-01-01T00:00:00Z", until: "2026-02-01T00:00:00Z" });
  expect(timeQuery()).toEqual({ since: "2026-01-01T00:00:00Z", until: "2026-02-01T00:00:00Z" });
});

test("filters are set, and cleared together", () => {
  setParameters({ status: "failed", range: "1h", view: "all" });
  expect(isFiltered(["status", ...timeNames])).toBe(true);
  clearFilters(["status", ...timeNames]);
  expect(isFiltered(["status", ...timeNames])).toBe(false);
  expect(parameter("view")).toBe("all");
});

test("a text is taken a moment after the last key", () => {
  const input = field(text());
  type(input, "ze");
  vi.advanceTimersByTime(149);
  type(input, "zebra ");
  vi.advanceTimersByTime(149);
  expect(parameter("text")).toBe("");
  vi.advanceTimersByTime(1);
  expect(parameter("text")).toBe("zebra");
  expect(input.value).toBe("zebra "); // one may type on
});

test("Enter takes the text at once, and typing is one step of the history", () => {
  const push = vi.spyOn(history, "pushState");
  const input = field(text());
  for (const typed of ["z", "ze", "zeb"]) {
    type(input, typed);
    vi.advanceTimersByTime(200);
  }
  expect(push).toHaveBeenCalledTimes(1);
  type(input, "zebra");
  press("Enter", {}, input);
  expect(parameter("text")).toBe("zebra");
  expect(push).toHaveBeenCalledTimes(1);
  type(input, "lion");
  press("Enter", {}, input);
  expect(push).toHaveBeenCalledTimes(2);
});

test("the field follows the address, as after the browser's Back", async () => {
  setParameters({ text: "first" });
  const page = text();
  expect(field(page).value).toBe("first");
  setParameters({ text: "other" });
  await vi.runAllTimersAsync();
  expect(field(page).value).toBe("other");
});

test("a key leads to the field, but is a letter within one; Escape leaves it", () => {
  const input = field(text());
  expect(press("/")).toBe(true);
  expect(document.activeElement).toBe(input);
  expect(press("/", {}, input)).toBe(false);
  expect(press("/", { ctrlKey: true })).toBe(false);
  press("Escape", {}, input);
  expect(document.activeElement).not.toBe(input);
});

test("each filter that is set has a chip that removes it", () => {
  setParameters({ user: "ann", range: "24h", sandbox: "0123456789abcdef", since: "2026-01-05T10:00:00Z", other: "x" });
  const page = draw(<Filters label="Filters" names={["user", "sandbox", ...timeNames]} children={null} />);
  const chips = [...page.querySelectorAll(".chip")].map((chip) => chip.textContent);
  expect(chips).toEqual([
    "user ann×",
    "sandbox 01234567×",
    "time last 24 hours×",
    "since 2026-01-05 11:00:00 UTC+01:00×",
  ]);
  page.querySelector<HTMLElement>('[aria-label="Remove the filter user ann"]')!.click();
  expect(parameter("user")).toBe("");
  expect(parameter("other")).toBe("x");
});

test("a choice is in the address, and a chosen range replaces two points in time", () => {
  setParameters({ since: "2026-01-05T10:00:00Z" });
  const page = draw(
    <>
      <Choice name="status" label="Status" any="Any" values={["ok", "failed"]} />
      <TimeChoice />
    </>,
  );
  const [status, time] = page.querySelectorAll("select");
  const choose = (select: HTMLSelectElement, value: string) => {
    select.value = value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
  };
  choose(status!, "failed");
  expect(parameter("status")).toBe("failed");
  expect(time!.value).toBe("custom");
  choose(time!, "7d");
  expect([parameter("range"), parameter("since")]).toEqual(["7d", ""]);
});
