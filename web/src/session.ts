import { computed, signal } from "@preact/signals";
import { get, onUnauthorized, post } from "./api/client";
import { Problem } from "./api/problem";
import type { Me } from "./api/records";

// The key itself is in a cookie that scripts cannot read. These pages know only whose key it is.

export const me = signal<Me | undefined>(undefined);
export const state = signal<"loading" | "signed-out" | "signed-in" | "unreachable">("loading");
export const reason = signal(""); // why one has to sign in again
export const failure = signal<Problem | undefined>(undefined);
export const isAdmin = computed(() => me.value?.role === "admin");
export const mayDebug = computed(() => me.value?.role !== "agent");

const channel = "BroadcastChannel" in window ? new BroadcastChannel("glasshouse-session") : undefined;

function signedIn(who: Me): void {
  me.value = who;
  reason.value = "";
  state.value = "signed-in";
}

function signedOut(why: string): void {
  me.value = undefined;
  reason.value = why;
  state.value = "signed-out";
}

onUnauthorized((problem) => {
  // Without a key before, there is nothing to explain.
  if (state.value === "signed-in") signedOut(problem.detail || "Your key is no longer valid.");
});

// start finds out who is signed in.
export async function start(): Promise<void> {
  failure.value = undefined;
  try {
    signedIn(await get<Me>("/me"));
  } catch (thrown) {
    const problem = Problem.from(thrown);
    if (problem.status === 401) signedOut(/no API key/.test(problem.detail) ? "" : problem.detail);
    else {
      failure.value = problem;
      state.value = "unreachable";
    }
  }
}

// signIn exchanges a key for the cookie. It throws a Problem for a key that is not valid.
export async function signIn(key: string): Promise<void> {
  signedIn(await post<Me>("/login", { key }));
  channel?.postMessage("changed");
}

export async function signOut(): Promise<void> {
  try {
    await post("/logout");
  } catch (thrown) {
    if (Problem.from(thrown).status !== 401) throw thrown;
  }
  signedOut("");
  channel?.postMessage("changed");
}

// Other tabs share the cookie: they learn whose it is now.
channel?.addEventListener("message", () => void start());
