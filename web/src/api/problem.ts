// Problem is an error response of the API (RFC 9457), or the failure to get a response.
export class Problem extends Error {
  constructor(
    readonly status: number, // 0: there was no response
    readonly title: string,
    readonly detail: string,
    readonly retryAfter = 0, // seconds; 0: the service does not say when to try again
    readonly reason = "", // of a refused statement, such as "masked-column"
  ) {
    super(detail || title);
  }

  // of returns the problem of a response that is not a success.
  static async of(response: Response): Promise<Problem> {
    const retryAfter = Number(response.headers.get("Retry-After")) || 0;
    const fallback = `The service answered ${response.status} ${response.statusText}`.trim() + ".";
    try {
      const body = (await response.json()) as { title?: string; detail?: string; refusal?: { reason?: string } };
      const reason = body.refusal?.reason ?? "";
      return new Problem(response.status, body.title ?? fallback, body.detail ?? "", retryAfter, reason);
    } catch {
      return new Problem(response.status, fallback, "", retryAfter);
    }
  }

  // from returns the problem for anything that was thrown.
  static from(thrown: unknown): Problem {
    if (thrown instanceof Problem) return thrown;
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    // The words of browsers for it differ, and say less.
    const isNetwork = thrown instanceof TypeError && /fetch|network|load/i.test(reason);
    return new Problem(
      0,
      "The service cannot be reached",
      isNetwork ? "Check your network, and whether the service runs." : reason,
    );
  }
}

export function isAborted(thrown: unknown): boolean {
  return thrown instanceof DOMException && thrown.name === "AbortError";
}
