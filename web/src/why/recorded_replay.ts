import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../api/client";
import { isAborted } from "../api/problem";
import type { Execution, Summary } from "../api/records";
import { parameter } from "../router";
import { mayDebug } from "../session";

const maxLookedAt = 5; // replays, the newest first

// Replay is a replay of an execution with a recording.
export type Replay = Pick<Execution, "execution_id" | "recorded_steps">;

// knownReplay returns a replay of an execution that did the same and whose recording is still there, or undefined.
export async function knownReplay(id: string, signal?: AbortSignal): Promise<Replay | undefined> {
  const { executions } = await get<{ executions: Summary[] }>("/executions", { replay_of: id, limit: 50 }, signal);
  for (const known of executions.filter((e) => e.recorded_steps > 0).slice(0, maxLookedAt)) {
    const path = `/executions/${encodeURIComponent(known.execution_id)}`;
    const { replay } = await get<Execution>(path, {}, signal);
    if (replay?.grade === "identical" && replay.rows === "log" && !replay.edited && !replay.environment) return known;
  }
  return undefined;
}

// recordedReplay makes a replay with a recording only if none is known.
export async function recordedReplay(id: string): Promise<Replay> {
  return (await knownReplay(id)) ?? post<Execution>(`/executions/${encodeURIComponent(id)}/replay`, { record: true });
}

// KnownReplay is the recorded replay of an execution that has no recording itself.
export interface KnownReplay {
  replay: Replay | undefined;
  isLooking: boolean; // it is not known yet whether there is one
  record: () => Promise<Replay>; // makes one, unless there is one
}

// canReplay reports whether the caller may run an execution again for a recording.
export const canReplay = (e: Execution) =>
  e.completed_at !== null && mayDebug.value && Boolean(e.input_log && e.code) && e.kind !== "database-query";

// useKnownReplay looks for a recorded replay, and again when the address has another one.
export function useKnownReplay(e: Execution | undefined): KnownReplay {
  const id = e && e.recorded_steps === 0 && canReplay(e) ? e.execution_id : "";
  const [found, setFound] = useState<{ of: string; replay: Replay | undefined }>();
  const latest = useRef(id);
  latest.current = id;
  const named = parameter("recording");
  const isHere = found?.of === id;
  const replay = isHere ? found.replay : undefined;
  useEffect(() => {
    if (!id || (isHere && (!named || replay?.execution_id === named))) return;
    const request = new AbortController();
    knownReplay(id, request.signal).then(
      (known) => setFound({ of: id, replay: known }),
      (thrown: unknown) => isAborted(thrown) || setFound({ of: id, replay: undefined }), // it is made when it is wanted
    );
    return () => request.abort();
  }, [id, named]);
  const record = async () => {
    const made = replay ?? (await recordedReplay(e!.execution_id));
    if (latest.current === id) setFound({ of: id, replay: made });
    return made;
  };
  return { replay, isLooking: id !== "" && !isHere, record };
}
