import { vi } from "vitest";

// A service for tests: it takes the place of fetch, and answers with what the test says.

export interface Call {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: Headers;
  body: unknown;
  signal: AbortSignal | null;
}

type Answer = Response | Promise<Response>;

// serve answers each request with what the function returns, and returns the list of the requests.
export function serve(answer: (call: Call, number: number) => Answer): Call[] {
  const calls: Call[] = [];
  vi.stubGlobal("fetch", async (address: string, init: RequestInit) => {
    const url = new URL(address, "http://glasshouse.test");
    const call: Call = {
      method: init.method ?? "GET",
      path: url.pathname,
      query: url.searchParams,
      headers: new Headers(init.headers),
      body: typeof init.body === "string" ? JSON.parse(init.body) : undefined,
      signal: init.signal ?? null,
    };
    calls.push(call);
    let abort = () => {};
    const aborted = new Promise<never>((_, reject) => {
      abort = () => reject(new DOMException("aborted", "AbortError"));
      call.signal?.addEventListener("abort", abort);
    });
    try {
      return await Promise.race([answer(call, calls.length - 1), aborted]);
    } finally {
      call.signal?.removeEventListener("abort", abort);
    }
  });
  return calls;
}

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json", ...headers } });
}

// EventStream is an answer with server-sent events, of which the test sends each piece.
export class EventStream {
  readonly response: Response;
  private controller!: ReadableStreamDefaultController<Uint8Array>;

  constructor(headers: Record<string, string> = {}) {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.controller = controller;
      },
    });
    this.response = new Response(body, { headers: { "Content-Type": "text/event-stream", ...headers } });
  }

  send(piece: string | Uint8Array): void {
    this.controller.enqueue(typeof piece === "string" ? new TextEncoder().encode(piece) : piece);
  }

  event(name: string, data: unknown, id = ""): void {
    this.send(`${id && `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  end(): void {
    this.controller.close();
  }

  fail(): void {
    this.controller.error(new TypeError("network error"));
  }
}

// settle lets everything happen that needs no time to pass.
export async function settle(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
}
