import { beforeEach, expect, test, vi } from "vitest";
import type { Summary } from "../api/records";
import { json, serve, settle } from "../testing/service";
import type { Filter } from "./executions_filter";
import { ExecutionList } from "./executions_list";

// A history of executions, newest first: e-0 is the oldest.
let history: Summary[];

function execution(number: number, changes: Partial<Summary> = {}): Summary {
  return {
    execution_id: `e-${number}`,
    created_at: new Date(Date.UTC(2026, 0, 1) + number * 1000).toISOString(),
    status: "completed",
    ...changes,
  } as Summary;
}

beforeEach(() => {
  history = Array.from({ length: 12_000 }, (_, n) => execution(11_999 - n));
});

// serveHistory answers like the service: the cursor is the id of the last row of a page.
function serveHistory() {
  return serve(({ query }) => {
    const first = query.get("after") ? history.findIndex((e) => e.execution_id === query.get("after")) + 1 : 0;
    const rows = history.slice(first, first + Number(query.get("limit")));
    const hasMore = first + rows.length < history.length;
    return json({ executions: rows, ...(hasMore && { next: rows.at(-1)!.execution_id }) });
  });
}

const all: Filter["matches"] = () => true;

async function open(filter: Partial<Filter> = { matches: all }): Promise<ExecutionList> {
  const list = new ExecutionList("", { query: {}, matches: undefined, leavesOut: () => false, ...filter });
  list.reload();
  await settle();
  return list;
}

const ids = (list: ExecutionList, count = 4) =>
  Array.from({ length: count }, (_, index) => list.row(index)?.execution_id);
const event = (name: string, data: Summary) => ({ id: "", name, data: JSON.stringify(data) });

test("the newest are there first, and further pages as one nears the end", async () => {
  const calls = serveHistory();
  const list = await open();
  expect(ids(list, 2)).toEqual(["e-11999", "e-11998"]);
  expect(list.hasBegun.value).toBe(true);
  list.want(0, 40);
  await settle();
  expect(calls).toHaveLength(1); // 100 rows are enough
  list.want(50, 80);
  await settle();
  expect(list.count).toBe(300);
  expect(list.row(299)?.execution_id).toBe("e-11700");
  expect(list.isComplete).toBe(false);
});

test("the end of the history is the end of the list", async () => {
  history = history.slice(0, 150);
  serveHistory();
  const list = await open();
  list.want(90, 99);
  await settle();
  expect(list.count).toBe(150);
  expect(list.isComplete).toBe(true);
});

test("far rows are forgotten, and loaded again at the same place", async () => {
  serveHistory();
  const list = await open();
  for (let end = 99; end < 11_000; end = list.count - 1) {
    list.want(end - 20, end);
    for (let n = Math.max(0, end - 20); n <= end; n++) list.row(n);
    await settle();
  }
  expect(list.row(200)).toBeUndefined();
  const total = list.count;
  list.want(190, 210);
  await settle();
  expect(list.row(200)?.execution_id).toBe("e-11799");
  expect(list.count).toBe(total);
});

test("at the top, an execution that begins appears, and its row changes when it ends", async () => {
  serveHistory();
  const list = await open();
  list.active = 0; // the row with the focus
  list.receive(event("began", execution(12_000, { status: "running" })));
  expect(ids(list, 2)).toEqual(["e-12000", "e-11999"]);
  expect(list.active).toBe(1);
  list.receive(event("ended", execution(12_000, { status: "failed" })));
  expect(list.row(0)?.status).toBe("failed");
  expect(list.count).toBe(101);
});

test("further down, new executions wait until the person wants them", async () => {
  serveHistory();
  const list = await open();
  list.scrollTop = 500;
  list.receive(event("began", execution(12_000, { status: "running" })));
  list.receive(event("began", execution(12_001, { status: "running" })));
  list.receive(event("ended", execution(12_000)));
  expect(ids(list, 1)).toEqual(["e-11999"]);
  expect(list.waiting.value).toBe(2);
  list.showWaiting();
  expect(ids(list, 3)).toEqual(["e-12001", "e-12000", "e-11999"]);
  expect(list.row(1)?.status).toBe("completed");
  expect(list.waiting.value).toBe(0);
});

test("only executions that match the filter are taken up; one that matches since its end has its place by its beginning", async () => {
  history = [execution(8), execution(6), execution(4)];
  serveHistory();
  const list = await open({ matches: (e) => e.status === "failed" });
  list.receive(event("began", execution(9, { status: "running" })));
  expect(list.count).toBe(3);
  list.receive(event("ended", execution(7, { status: "failed" })));
  list.receive(event("ended", execution(9, { status: "failed" })));
  expect(ids(list, 5)).toEqual(["e-9", "e-8", "e-7", "e-6", "e-4"]);
});

test("a list of the past takes up nothing", async () => {
  serveHistory();
  const list = await open({ matches: undefined });
  list.receive(event("began", execution(12_000)));
  expect(list.isLive).toBe(false);
  expect(list.count).toBe(100);
});

test("what happens while the first page is loaded is not lost, nor there twice", async () => {
  let answer: (response: Response) => void = () => {};
  serve(() => new Promise<Response>((resolve) => (answer = resolve)));
  const list = new ExecutionList("", { query: {}, matches: () => true, leavesOut: () => false });
  list.reload();
  list.receive(event("began", execution(5, { status: "running" })));
  list.receive(event("ended", execution(5)));
  list.receive(event("began", execution(4)));
  answer(json({ executions: [execution(4), execution(3)] }));
  await settle();
  expect(ids(list, 3)).toEqual(["e-5", "e-4", "e-3"]);
  expect(list.count).toBe(3);
});

test("if events are missing, the list says so, or is loaded again where nobody is reading", async () => {
  const calls = serveHistory();
  const list = await open();
  list.scrollTop = 500;
  list.receive({ id: "", name: "gap", data: "{}" });
  expect(list.isStale.value).toBe(true);
  expect(calls).toHaveLength(1);
  list.scrollTop = 0;
  list.receive({ id: "", name: "gap", data: "{}" });
  await settle();
  expect(calls).toHaveLength(2);
  expect(list.isStale.value).toBe(false);
});

test("a page that cannot be loaded is tried again on request", async () => {
  const calls = serve((_, number) =>
    number === 0 ? json({ detail: "No database." }, 503) : json({ executions: [execution(1)] }),
  );
  const list = await open();
  expect(list.problem.value?.detail).toBe("No database.");
  expect(list.hasBegun.value).toBe(true);
  list.want(0, 20); // does not try by itself
  await settle();
  expect(calls).toHaveLength(1);
  list.retry();
  await settle();
  expect(list.problem.value).toBeUndefined();
  expect(ids(list, 1)).toEqual(["e-1"]);
});

test("a further page that cannot be loaded leaves the rows, and is tried again on request only", async () => {
  let isDown = true;
  const page = { executions: history.slice(0, 100), next: "e-11900" };
  const calls = serve(({ query }) => (query.get("after") && isDown ? json({}, 503) : json(page)));
  const list = await open();
  for (let n = 0; n < 3; n++) {
    list.want(80, 99);
    await settle();
  }
  expect(calls).toHaveLength(2);
  expect(list.count).toBe(100);
  isDown = false;
  list.retry();
  await settle();
  expect(calls.length).toBeGreaterThan(2);
  expect(list.problem.value).toBeUndefined();
});

test("many events are drawn together", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    serveHistory();
    const list = await open();
    const before = list.version.value;
    for (let n = 0; n < 50; n++) list.receive(event("began", execution(12_000 + n)));
    expect(list.version.value).toBe(before);
    vi.advanceTimersByTime(20);
    expect(list.version.value).toBe(before + 1);
  } finally {
    vi.useRealTimers();
  }
});

test("the number of what the filter leaves out is that of the service, and rises as such runs begin", async () => {
  serve(() => json({ executions: [], left_out: 3 }));
  const isReplay = ({ kind }: Summary) => kind === "replay";
  const list = await open({ matches: (e) => !isReplay(e), leavesOut: isReplay });
  list.receive(event("began", execution(1, { kind: "replay", status: "running" })));
  list.receive(event("ended", execution(1, { kind: "replay" })));
  expect([list.leftOut.value, list.count]).toEqual([4, 0]);
});
