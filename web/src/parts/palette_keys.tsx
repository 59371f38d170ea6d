import { signal } from "@preact/signals";
import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

type Opened = "" | "search" | "keys";

const opened = signal<Opened>("");

export function openPalette(what: Opened): void {
  opened.value = what;
}

interface Dialogs {
  Search: FunctionComponent<{ close: () => void }>;
  Keys: FunctionComponent<{ close: () => void }>;
}

// usePalette opens the search over everything with Ctrl+K, and the list of keys with "?". Their code is loaded then.
export function usePalette() {
  const [dialogs, setDialogs] = useState<Dialogs>();
  const what = opened.value;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openPalette(opened.value === "search" ? "" : "search");
      } else if (event.key === "?" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(target)) {
        event.preventDefault();
        openPalette("keys");
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  useEffect(() => {
    if (what && !dialogs)
      void import("../pages/palette").then(
        (loaded) => setDialogs(loaded),
        () => openPalette(""), // the next attempt may succeed
      );
  }, [what]);
  if (!what || !dialogs) return null;
  const Shown = what === "search" ? dialogs.Search : dialogs.Keys;
  return <Shown key={what} close={() => openPalette("")} />;
}

function isTyping(target: HTMLElement): boolean {
  return target.matches("input, select, textarea, [contenteditable=true]");
}
