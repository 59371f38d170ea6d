// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import { json, serve } from "../testing/service";
import { recordedReplay } from "./recorded_replay";

const replays: Record<string, object> = {
  edited: { grade: "identical", rows: "log", edited: true },
  other: { grade: "differs", rows: "log" },
  same: { grade: "identical", rows: "log" },
};

// serveReplays answers with the replays of an execution; all but "plain" have a recording.
const serveReplays = (ids: string[]) =>
  serve(({ method, path }) => {
    if (method === "POST") return json({ execution_id: "new" });
    if (path.endsWith("/executions"))
      return json({ executions: ids.map((id) => ({ execution_id: id, recorded_steps: id === "plain" ? 0 : 9 })) });
    return json({ execution_id: path, replay: replays[path.split("/").at(-1)!] });
  });

beforeEach(() => {
  vi.unstubAllGlobals();
});

test("a recorded replay that did the same is used again, and no other one is made", async () => {
  const calls = serveReplays(["edited", "plain", "other", "same"]);
  expect((await recordedReplay("e1")).execution_id).toBe("same");
  expect(calls[0]!.query.get("replay_of")).toBe("e1");
  expect(calls.map(({ method }) => method)).not.toContain("POST");
});

test("without such a replay, one is made and recorded", async () => {
  const calls = serveReplays(["plain", "edited"]);
  expect((await recordedReplay("e1")).execution_id).toBe("new");
  expect(calls.at(-1)).toMatchObject({ method: "POST", body: { record: true } });
});
