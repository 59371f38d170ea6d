import { batch, signal } from "@preact/signals";
import { get, post, remove, send } from "../api/client";
import { follow } from "../api/events";
import { isAborted, Problem } from "../api/problem";
import type { DebugBreakpoint, DebugPosition, DebugSessionRecord, DebugVariable, Execution } from "../api/records";
import { isTableType } from "../parts/table";

interface StackFrame {
  id: number;
  line: number;
  name: string;
}

interface Scope {
  name: string;
  variablesReference: number;
  namedVariables?: number;
}

interface ConsoleLine {
  category: string; // stdout, stderr, console, asked, answer, failure
  text: string;
}

export interface RequestedBreakpoint {
  line: number;
  condition?: string;
  hitCondition?: string; // N, ==N, >=N, >N, <=N, <N or %N
  logMessage?: string; // printed instead of a stop
}

const maxConsoleLines = 2000;

export const moves = ["continue", "next", "stepIn", "stepOut", "stepBack", "reverseContinue"] as const;
export type Move = (typeof moves)[number];

// DebugSession follows one session of the debugger. The service has its state: another page, or this one after a
// reload, shows the same.
export class DebugSession {
  readonly position = signal<DebugPosition>();
  readonly frames = signal<StackFrame[]>([]);
  readonly frame = signal(0); // id of the chosen frame
  readonly scopes = signal<Scope[]>([]);
  readonly stop = signal(0); // changes with each position; references are of one position
  readonly console = signal<ConsoleLine[]>([]);
  readonly table = signal<{ expression: string; path: string; step: number | undefined } | undefined>(undefined); // the last value, while the program is at the step
  readonly assigned = signal<{ step: number | undefined; paths: Set<string> }>({ step: undefined, paths: new Set() }); // by the person, at the step
  readonly breakpoints = signal<DebugBreakpoint[]>([]);
  readonly result = signal<Execution>();
  readonly problem = signal<Problem>();
  readonly code = signal<string>();
  executionID = "";
  private readonly path: string;
  private unfollow: () => void = () => {};
  private isMoving = false;
  private next: Move | undefined;
  private shownStep = 0; // of the frames
  private isRefreshing = false;
  private isStale = false;

  constructor(readonly id: string) {
    this.path = `/debug/sessions/${encodeURIComponent(id)}`;
  }

  // attach loads the session, and follows it until detach.
  async attach(): Promise<void> {
    try {
      const record = await get<DebugSessionRecord>(this.path);
      this.executionID = record.execution_id;
      const { content } = await this.send<{ content: string }>("source", { sourceReference: 1 });
      batch(() => {
        this.code.value = content;
        this.breakpoints.value = record.breakpoints ?? [];
      });
    } catch (thrown) {
      this.fail(thrown);
      return;
    }
    this.unfollow = follow(
      `${this.path}/events`,
      {},
      {
        onEvent: ({ name, data }) => {
          if (name === "output") {
            const { category, output } = JSON.parse(data) as { category: string; output: string };
            this.write(category, output);
          } else if (name === "breakpoint") {
            const { breakpoint } = JSON.parse(data) as { breakpoint: DebugBreakpoint };
            this.breakpoints.value = this.breakpoints.value.map((b) =>
              b.id === breakpoint.id ? { ...b, ...breakpoint } : b,
            );
          } else {
            if (name === "terminated") this.unfollow();
            void this.refresh();
          }
        },
        onLost: (problem) => this.fail(problem),
      },
    );
    await this.refresh();
  }

  detach(): void {
    this.unfollow();
  }

  // move does a command that moves the program. Of those that come before it is answered, only the last is done.
  async move(command: Move): Promise<void> {
    this.next = command;
    if (this.isMoving) return;
    this.isMoving = true;
    while (this.next && this.position.value?.state !== "running") {
      const now = this.next;
      this.next = undefined;
      await this.attempt(async () => {
        const { where } = await this.send<{ where: DebugPosition }>(now, {}, 1);
        this.position.value = where;
      });
    }
    this.next = undefined;
    this.isMoving = false;
    void this.refresh();
  }

  async pause(): Promise<void> {
    await this.attempt(() => this.send("pause", { threadId: 1 }));
  }

  // end cancels the program. Its recording stays.
  async end(): Promise<void> {
    await this.attempt(() => post(`/executions/${encodeURIComponent(this.executionID)}/cancel`));
    void this.refresh();
  }

  async close(): Promise<void> {
    this.detach();
    await remove(this.path).catch(() => {}); // it ends by itself when nobody uses it
  }

  // drive makes this page the one whose commands the session takes.
  async drive(): Promise<void> {
    await this.attempt(() => this.send("drive", {}));
  }

  async setBreakpoints(list: RequestedBreakpoint[]): Promise<void> {
    await this.attempt(async () => {
      const { breakpoints } = await this.send<{ breakpoints: DebugBreakpoint[] }>("setBreakpoints", {
        breakpoints: list,
      });
      this.breakpoints.value = breakpoints.map((b, index) => ({ ...list[index]!, ...b }));
    });
  }

  async choose(frame: number): Promise<void> {
    await this.attempt(async () => {
      const { scopes } = await this.send<{ scopes: Scope[] }>("scopes", { frameId: frame });
      batch(() => {
        this.frame.value = frame;
        this.scopes.value = scopes;
      });
    });
  }

  async variables(reference: number, start: number, count: number): Promise<DebugVariable[]> {
    const answer = await this.send<{ variables: DebugVariable[] | null }>("variables", {
      variablesReference: reference,
      start,
      count,
    });
    return answer.variables ?? [];
  }

  // assign gives a variable, or a part of one, another value. path names it for the page. It throws what the service says.
  async assign(reference: number, name: string, value: string, path: string): Promise<void> {
    await this.send("setVariable", { variablesReference: reference, name, value });
    const { step, paths } = this.assigned.peek();
    const now = this.position.peek()?.step;
    this.assigned.value = { step: now, paths: new Set(step === now ? [...paths, path] : [path]) };
    void this.refresh();
  }

  async evaluate(expression: string): Promise<void> {
    this.write("asked", expression + "\n");
    try {
      const frame = this.frame.value;
      const answer = await this.send<{ result: string; type?: string; variablesReference?: number }>("evaluate", {
        expression,
        context: "repl",
        ...(frame ? { frameId: frame } : {}),
      });
      if (answer.result) this.write("answer", answer.result + "\n");
      const isTable = isTableType(answer.type) && answer.variablesReference && this.position.value?.live;
      this.table.value = isTable
        ? { expression, path: `${this.path}/values/${answer.variablesReference}/rows`, step: this.position.value?.step }
        : undefined;
      void this.refresh(); // it may have changed a variable
    } catch (thrown) {
      this.write("failure", Problem.from(thrown).message + "\n");
    }
  }

  private write(category: string, text: string): void {
    this.console.value = [...this.console.value, { category, text }].slice(-maxConsoleLines);
  }

  private async send<T>(command: string, body: unknown, wait = 0): Promise<T> {
    return (await (await send("POST", `${this.path}/${command}`, { body, query: { wait } })).json()) as T;
  }

  private async attempt(action: () => Promise<unknown>): Promise<void> {
    try {
      await action();
      this.problem.value = undefined;
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  private fail(thrown: unknown): void {
    if (!isAborted(thrown)) this.problem.value = Problem.from(thrown);
  }

  // refresh loads the position, the stack and the scopes. Calls during a refresh lead to one more.
  private async refresh(): Promise<void> {
    if (this.isRefreshing) {
      this.isStale = true;
      return;
    }
    this.isRefreshing = true;
    do {
      this.isStale = false;
      try {
        await this.load();
      } catch (thrown) {
        this.fail(thrown);
      }
    } while (this.isStale);
    this.isRefreshing = false;
  }

  private async load(): Promise<void> {
    const { where, result } = await get<DebugSessionRecord>(this.path);
    if (where.state === "running" || !where.step) {
      batch(() => {
        this.position.value = where;
        this.result.value = result;
        this.frames.value = [];
        this.scopes.value = [];
      });
      return;
    }
    const thread = where.lane ?? 1;
    try {
      const { stackFrames } = await this.send<{ stackFrames: StackFrame[] | null }>("stackTrace", {
        threadId: thread,
        levels: 200,
      });
      const frames = stackFrames ?? [];
      // The chosen frame stays chosen while the program stands.
      const stays = where.step === this.shownStep && frames.some((f) => f.id === this.frame.peek());
      const top = stays ? this.frame.peek() : (frames[0]?.id ?? 0);
      const { scopes } = top ? await this.send<{ scopes: Scope[] }>("scopes", { frameId: top }) : { scopes: [] };
      batch(() => {
        this.position.value = where;
        this.result.value = result;
        this.frames.value = frames;
        this.frame.value = top;
        this.scopes.value = scopes;
        this.stop.value++;
      });
      this.shownStep = where.step;
    } catch (thrown) {
      // The program has moved on meanwhile, so that its frames are gone. Its event leads here again.
      if (!(thrown instanceof Problem) || ![404, 409, 422].includes(thrown.status)) throw thrown;
      this.position.value = where;
    }
  }
}
