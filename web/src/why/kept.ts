import { effect } from "@preact/signals";
import type { Why } from "../api/records";
import { me, state } from "../session";

// An answer with facts runs the code again, so answers are kept, even if the page is loaded again. They belong to who
// is signed in: signing out forgets them.
const maxKept = 50;
const storageKey = "glasshouse-why";

type Answers = [question: string, answer: Why][];

function load(): Answers {
  try {
    const { user, answers } = JSON.parse(sessionStorage.getItem(storageKey) ?? "{}") as {
      user?: string;
      answers?: Answers;
    };
    return user === me.peek()?.key_id && Array.isArray(answers) ? answers : [];
  } catch {
    return []; // without storage, or of another version
  }
}

let kept: Map<string, Why> | undefined;

export function keptAnswer(question: string): Why | undefined {
  kept ??= new Map(load());
  return kept.get(question);
}

// keepAnswer keeps the newest answers.
export function keepAnswer(question: string, answer: Why): void {
  kept ??= new Map(load());
  kept.set(question, answer);
  for (const old of kept.keys()) {
    if (kept.size <= maxKept) break;
    kept.delete(old);
  }
  try {
    sessionStorage.setItem(storageKey, JSON.stringify({ user: me.peek()?.key_id, answers: [...kept] }));
  } catch {
    // they do not fit: a reload asks again
  }
}

effect(() => {
  if (state.value !== "signed-out") return;
  kept = undefined;
  sessionStorage.removeItem(storageKey);
});
