// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Execution } from "../api/records";
import { StepThrough } from "../pages/execution";
import { WhyButtons } from "../pages/execution_why";
import { me } from "../session";
import { draw, leave } from "../testing/page";
import { json, serve } from "../testing/service";
import { recordedReplay, useKnownReplay } from "./recorded_replay";

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

afterEach(leave);

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

const run = {
  execution_id: "e1",
  kind: "execute",
  status: "completed",
  completed_at: "2026-01-01",
  code: "n = 1",
  input_log: {},
  recorded_steps: 0,
  usage: { wall_ms: 20 },
} as unknown as Execution;

function Offers() {
  const known = useKnownReplay(run);
  return (
    <>
      <StepThrough of={run} known={known} attempt={(action) => () => action().then(() => {})} />
      <WhyButtons of={run} subjects={["n"]} recording={known.replay?.execution_id ?? ""} known={known} ask={() => {}} />
    </>
  );
}

test("a run whose replay was recorded offers its steps and an answer, and not to run again", async () => {
  me.value = { role: "admin" } as typeof me.value;
  const calls = serveReplays(["edited", "same"]);
  const page = draw(<Offers />);
  await vi.waitFor(() => expect(page.textContent).toBe("Step through: 9 stepsWhy is n this?"));
  expect(page.querySelector("a")!.getAttribute("href")).toBe("/ui/executions/same/steps");
  expect(calls.map(({ method }) => method)).not.toContain("POST");
});

test("a run without such a replay says what it costs", async () => {
  me.value = { role: "admin" } as typeof me.value;
  serveReplays(["edited"]);
  const page = draw(<Offers />);
  await vi.waitFor(() =>
    expect(page.textContent).toBe("Step through (runs again, 20.0 ms)Why is n this?runs the code again, about 40 ms"),
  );
});
