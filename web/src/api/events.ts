import { reportUnauthorized, send } from "./client";
import { isAborted, Problem } from "./problem";

export interface ServerEvent {
  id: string;
  name: string;
  data: string;
}

interface Listener {
  onEvent: (event: ServerEvent) => void;
  onOpen?: () => void;
  onLost?: (problem: Problem) => void; // it tries again, unless the problem is final
  onEnd?: () => void; // there are no more events
}

// maxDelay is the longest time between two attempts to connect, in milliseconds.
const maxDelay = 15_000;

// follow reads server-sent events until the returned function is called, and connects again after a failure with the
// id of the last event. It does what EventSource does, and tells the reason of a failure. A hidden page keeps no
// connection: a browser has six for a server, and each tab would take one.
export function follow(path: string, query: Record<string, string>, listener: Listener, lastID = ""): () => void {
  let attempts = 0;
  let stopped = false;
  let timer = 0;
  let request: AbortController | undefined;

  const connect = async () => {
    const mine = new AbortController();
    request = mine;
    try {
      const response = await send("GET", path, {
        query,
        accept: "text/event-stream",
        headers: lastID ? { "Last-Event-ID": lastID } : {},
        signal: mine.signal,
      });
      if (response.status === 204 || !response.body) {
        stop();
        listener.onEnd?.();
        return;
      }
      attempts = 0;
      listener.onOpen?.();
      for await (const event of events(response.body)) {
        if (event.id) lastID = event.id;
        if (event.name === "error") {
          const problem = problemOf(event);
          if (problem.status === 401) reportUnauthorized(problem);
          throw problem;
        }
        listener.onEvent(event);
      }
      again();
    } catch (thrown) {
      if (isAborted(thrown) || stopped || request !== mine) return;
      const problem = Problem.from(thrown);
      listener.onLost?.(problem);
      if (isFinal(problem)) stop();
      else again();
    }
  };
  const again = () => {
    if (stopped || document.hidden) return;
    timer = window.setTimeout(connect, Math.min(maxDelay, 500 * 2 ** attempts++));
  };
  const show = () => {
    window.clearTimeout(timer);
    request?.abort();
    request = undefined;
    if (!document.hidden && !stopped) void connect();
  };
  const stop = () => {
    stopped = true;
    window.clearTimeout(timer);
    document.removeEventListener("visibilitychange", show);
    request?.abort();
  };
  document.addEventListener("visibilitychange", show);
  if (!document.hidden) void connect();
  return stop;
}

// startExecution posts code whose execution is answered with events, and returns a function that stops reading. After a
// lost connection it follows the execution at its location. A problem before there is one goes to onRefused.
export function startExecution(
  path: string,
  body: unknown,
  listener: Listener & { onRefused: (problem: Problem) => void },
): () => void {
  const request = new AbortController();
  let stopFollowing = () => {};
  const read = async () => {
    let location = "";
    let lastID = "";
    try {
      const response = await send("POST", path, { body, accept: "text/event-stream", signal: request.signal });
      location = response.headers.get("Location") ?? "";
      for await (const event of events(response.body!)) {
        if (event.id) lastID = event.id;
        if (event.name === "error") throw problemOf(event);
        listener.onEvent(event);
        if (event.name === "done") return;
      }
    } catch (thrown) {
      if (request.signal.aborted) return;
      const problem = Problem.from(thrown);
      if (!location) return listener.onRefused(problem);
      listener.onLost?.(problem);
    }
    if (!request.signal.aborted) stopFollowing = follow(location, {}, listener, lastID);
  };
  void read();
  return () => {
    request.abort();
    stopFollowing();
  };
}

// isFinal reports whether trying again would fail in the same way. 4xx does not get better by itself; 429 does.
export function isFinal(problem: Problem): boolean {
  return problem.status >= 400 && problem.status < 500 && problem.status !== 429;
}

function problemOf(event: ServerEvent): Problem {
  const body = JSON.parse(event.data) as { status?: number; title?: string; detail?: string };
  return new Problem(body.status ?? 500, body.title ?? "The stream failed", body.detail ?? "");
}

async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parse(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.releaseLock();
  }
}

// parse returns the event of a block, or undefined for a comment.
function parse(block: string): ServerEvent | undefined {
  const event: ServerEvent = { id: "", name: "message", data: "" };
  let hasData = false;
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const value = line.slice(colon + 1).replace(/^ /, "");
    switch (line.slice(0, colon)) {
      case "id":
        event.id = value;
        break;
      case "event":
        event.name = value;
        break;
      case "data":
        event.data += (hasData ? "\n" : "") + value;
        hasData = true;
        break;
    }
  }
  return hasData ? event : undefined;
}
