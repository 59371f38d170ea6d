import { Problem } from "./problem";

type Query = Record<string, string | number | undefined>;

interface Options {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal | undefined;
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

// address returns a path with a query. It leaves out empty values, which the API refuses.
export function address(path: string, query: Query = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") pairs.set(name, String(value));
  }
  const text = pairs.toString();
  return text ? `${path}?${text}` : path;
}

// send returns the response to a request with the cookie of the session. It throws a Problem for every other outcome,
// and lets the session know of a key that is no longer valid.
export async function send(method: string, path: string, options: Options & { accept?: string; headers?: Record<string, string> } = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: options.accept ?? "application/json", ...options.headers };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(address(path, options.query), {
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
  if (response.ok) return response;
  const problem = await Problem.of(response);
  if (response.status === 401) whenUnauthorized(problem);
  throw problem;
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await (await send("GET", path, { query, signal })).json()) as T;
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  return (await (await send("POST", path, { body })).json()) as T;
}

export async function remove(path: string): Promise<void> {
  await send("DELETE", path);
}
