import { useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { Problem } from "../api/problem";
import { plural } from "../format";

export interface Found {
  step: number; // 0: there is none
  unknown: number;
  unknown_names?: { name: string; nearest?: string }[];
}

type Direction = "next" | "previous";

// missing says why no step was found in either direction.
export function missing({ unknown_names: names = [], unknown }: Found): string {
  if (names.length > 0)
    return names
      .map(({ name, nearest }) => `There is no variable ${name}${nearest ? `. Did you mean ${nearest}?` : "."}`)
      .join(" ");
  const open = unknown ? ` At ${plural(unknown, "step")} it has no value, because a variable is not there.` : "";
  return `It does not hold at any step.${open}`;
}

// search looks for a step in a direction, and then in the other one.
export async function search(
  path: string,
  condition: string,
  step: number,
  direction: Direction,
): Promise<{ step: number; isOther: boolean; said: string }> {
  const ask = (to: Direction) =>
    get<Found>(`${path}/find`, { condition, ...(to === "next" ? { from: step + 1 } : { before: step }) });
  const first = await ask(direction);
  if (first.step) return { step: first.step, isOther: false, said: "" };
  if ((first.unknown_names ?? []).length > 0) return { step: 0, isOther: false, said: missing(first) };
  const other = await ask(direction === "next" ? "previous" : "next");
  if (!other.step) return { step: 0, isOther: false, said: missing(other.unknown_names ? other : first) };
  const where = direction === "next" ? "later" : "earlier";
  return { step: other.step, isOther: true, said: `It holds at no ${where} step, but at step ` };
}

// Find goes to the next or the previous step at which a condition holds. If it holds only in the other direction, it says
// where, and a click goes there.
export function Find({ path, step, found }: { path: string; step: number; found: (step: number) => void }) {
  const [condition, setCondition] = useState("");
  const [said, setSaid] = useState("");
  const [other, setOther] = useState(0);
  const [running, setRunning] = useState(false);
  const direction = useRef<Direction>("next");
  const submit = async (event: Event) => {
    event.preventDefault();
    const wanted = direction.current;
    direction.current = "next";
    if (!condition.trim()) return;
    setRunning(true);
    setOther(0);
    try {
      const answer = await search(path, condition, step, wanted);
      setSaid(answer.said);
      if (answer.isOther) setOther(answer.step);
      else if (answer.step) found(answer.step);
    } catch (thrown) {
      setSaid(Problem.from(thrown).message);
    }
    setRunning(false);
  };
  return (
    <form class="panel form" onSubmit={submit} aria-label="Find a step">
      <label class="grow">
        Step at which this holds
        <input
          class="mono"
          value={condition}
          placeholder="total > 100 and name in names"
          spellcheck={false}
          onInput={(event) => setCondition(event.currentTarget.value)}
        />
      </label>
      <button disabled={running} onClick={() => (direction.current = "next")} type="submit">
        {running ? "Searching…" : "Find next"}
      </button>
      <button disabled={running} onClick={() => (direction.current = "previous")} type="submit">
        Find previous
      </button>
      {said && (
        <p class="field-error" role="alert">
          {said}
          {other > 0 && (
            <button
              type="button"
              class="link"
              onClick={() => {
                setSaid("");
                setOther(0);
                found(other);
              }}
            >
              {other}
            </button>
          )}
        </p>
      )}
    </form>
  );
}
