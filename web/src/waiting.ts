import { effect, signal } from "@preact/signals";
import { get } from "./api/client";
import { isAdmin } from "./session";

// waitingWrites is the number of statements that wait for a decision of an admin. The menu shows it.
export const waitingWrites = signal(0);

const interval = 10_000; // milliseconds between two looks

// lookForWaiting looks for the number now.
export async function lookForWaiting(): Promise<void> {
  if (!isAdmin.peek() || document.hidden) return;
  try {
    waitingWrites.value = (await get<{ pending: number }>("/pending-writes/count")).pending;
  } catch {
    // the next look may succeed
  }
}

// watchWaiting keeps the number up to date until the returned function is called.
export function watchWaiting(): () => void {
  const timer = window.setInterval(() => void lookForWaiting(), interval);
  const show = () => void lookForWaiting();
  document.addEventListener("visibilitychange", show);
  const unwatch = effect(() => {
    if (isAdmin.value) void lookForWaiting();
    else waitingWrites.value = 0;
  });
  return () => {
    window.clearInterval(timer);
    document.removeEventListener("visibilitychange", show);
    unwatch();
  };
}
