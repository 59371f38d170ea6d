import { computed, signal } from "@preact/signals";

// Every page has an address of its own, with its filters in the query, so that a reload and a shared link show the same.

const current = signal(new URL(window.location.href));

export const path = computed(() => current.value.pathname.replace(/^\/ui/, "") || "/");
export const query = computed(() => current.value.searchParams);
export const here = computed(() => current.value.pathname + current.value.search);

// parameter returns a value of the query, or "".
export function parameter(name: string): string {
  return query.value.get(name) ?? "";
}

// navigate shows another address of these pages.
export function navigate(to: string, replace = false): void {
  const target = new URL(to, window.location.href);
  if (target.href === current.value.href) return;
  const samePage = target.pathname === current.value.pathname;
  current.value = target; // first: what the page loads need not wait for the browser's history
  history[replace ? "replaceState" : "pushState"](null, "", target);
  if (!samePage) {
    window.scrollTo(0, 0);
    focusHeading();
  }
}

// setParameters changes values of the query; "" removes one.
export function setParameters(values: Record<string, string>, replace = false): void {
  const target = new URL(current.value);
  for (const [name, value] of Object.entries(values)) {
    if (value) target.searchParams.set(name, value);
    else target.searchParams.delete(name);
  }
  navigate(target.href, replace);
}

// focusHeading moves the focus to the new page, where a reader of the screen continues. It waits until it is drawn.
function focusHeading(): void {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      if (document.activeElement === document.body || !document.activeElement?.closest("main")) {
        document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
      }
    }),
  );
}

window.addEventListener("popstate", () => (current.value = new URL(window.location.href)));

// A click on a link to one of these pages does not load the document again, unless the person wants another tab.
document.addEventListener("click", (event) => {
  if (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  ) {
    return;
  }
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== window.location.origin) return;
  if (!link.pathname.startsWith("/ui/")) return;
  event.preventDefault();
  navigate(link.href);
});
