import { signal } from "@preact/signals";
import { Problem } from "./problem";

export type Query = Record<string, string | number | string[] | undefined>;

interface Options {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

interface SendOptions extends Options {
  accept?: string;
  headers?: Record<string, string>;
}

// whenUnauthorized is called for every 401, with the reason that the service gave. The session sets it.
let whenUnauthorized: (problem: Problem) => void = () => {};

export function onUnauthorized(call: (problem: Problem) => void): void {
  whenUnauthorized = call;
}

// reportUnauthorized tells the session of a key that is no longer valid.
export function reportUnauthorized(problem: Problem): void {
  whenUnauthorized(problem);
}

// address returns a path with a query. It leaves out empty values, which the API refuses, and repeats the name of a list.
export function address(path: string, query: Query = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined && each !== "") pairs.append(name, String(each));
  }
  const text = pairs.toString();
  return text ? `${path}?${text}` : path;
}

// waiting is the limit of the key for which requests wait; undefined if none waits.
export const waiting = signal<Problem | undefined>(undefined);
let waitingRequests = 0;

const maxWait = 60; // seconds; the rate of requests admits one in each minute at least

// waitFor waits until a limit admits the next request. It throws if the request is aborted.
async function waitFor(limit: Problem, request: AbortSignal | undefined): Promise<void> {
  waitingRequests++;
  waiting.value = limit;
  try {
    await new Promise<void>((resolve, reject) => {
      const timer = window.setTimeout(resolve, limit.retryAfter * 1000);
      request?.addEventListener("abort", () => {
        window.clearTimeout(timer);
        reject(request.reason as Error);
      });
    });
  } finally {
    if (--waitingRequests === 0) waiting.value = undefined;
  }
}

// send returns the response to a request with the cookie of the session. It throws a Problem for every other outcome,
// and lets the session know of a key that is no longer valid. It sends a GET again when a limit of the key admits it.
export async function send(method: string, path: string, options: SendOptions = {}): Promise<Response> {
  for (;;) {
    const response = await sendOnce(method, path, options);
    if (response.ok) return response;
    const problem = await Problem.of(response);
    const isSoon = problem.retryAfter > 0 && problem.retryAfter <= maxWait;
    if (method === "GET" && problem.status === 429 && isSoon) {
      await waitFor(problem, options.signal);
      continue;
    }
    if (response.status === 401) whenUnauthorized(problem);
    throw problem;
  }
}

async function sendOnce(method: string, path: string, options: SendOptions): Promise<Response> {
  const headers: Record<string, string> = { Accept: options.accept ?? "application/json", ...options.headers };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(address(path, options.query), {
      method,
      headers,
      credentials: "same-origin",
      cache: "no-store",
      body: options.body === undefined ? null : JSON.stringify(options.body),
      signal: options.signal ?? null,
    });
  } catch (thrown) {
    if (options.signal?.aborted) throw thrown;
    throw Problem.from(thrown);
  }
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await (await send("GET", path, { query, signal })).json()) as T;
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  return (await (await send("POST", path, { body })).json()) as T;
}

export async function put<T>(path: string, body: unknown): Promise<T> {
  return (await (await send("PUT", path, { body })).json()) as T;
}

export async function remove(path: string): Promise<void> {
  await send("DELETE", path);
}
