import { signal } from "@preact/signals";
import { get, post, remove } from "../api/client";
import { Problem } from "../api/problem";
import type { Summary } from "../api/records";
import type { Schema } from "../parts/sql";
import { Run, type RunBody } from "./play_run";

interface Limits {
  max_execution_time: number; // seconds
  max_output_size: number; // bytes of each stream
  idle_timeout: number; // seconds
  lifetime: number; // seconds
  enable_network_access: boolean;
  allowed_hosts: string[];
  write_policy: "reject" | "capture";
  upload_max_bytes: number; // all uploads of the session
  file_max_bytes: number;
}

interface Helper {
  name: string;
  signature: string;
  description: string;
}

// longer times than the defaults: a person reads between two runs
const sessionTimes = { lifetime: 8 * 3600, idle_timeout: 1800 }; // seconds
const formerRuns = 20;
const loadedRuns = 3; // of the former ones; a person opens the others

// Session is the sandbox of the playground with its runs, newest first. It is created when it is first needed.
export class Session {
  readonly id = signal("");
  readonly state = signal<"none" | "opening" | "live" | "ended">("none");
  readonly limits = signal<Limits | undefined>(undefined);
  readonly helpers = signal<Record<string, Helper[]>>({});
  readonly runs = signal<Run[]>([]);
  readonly unlisted = signal(0); // former runs beyond those in runs
  readonly problem = signal<Problem | undefined>(undefined);
  readonly changes = signal(0); // grows when variables, files or artifacts may be different

  private readonly loadedSchemas = new Map<string, Promise<Schema>>(); // by path
  private creating: Promise<string> | undefined;
  private inspecting: Promise<unknown> = Promise.resolve();

  // config is what the sandbox is created with, in addition to the times.
  constructor(
    id = "",
    private readonly config: Record<string, unknown> = {},
  ) {
    this.id.value = id;
    if (id) this.state.value = "opening";
  }

  private get creation(): Record<string, unknown> {
    return { ...sessionTimes, ...this.config };
  }

  get isRunning(): boolean {
    return this.runs.value.some((run) => run.isLoaded && !run.isOver);
  }

  get path(): string {
    return `/sandbox/${encodeURIComponent(this.id.value)}`;
  }

  // schemaPath returns the path of the schema of a database; "" is the default one.
  schemaPath(database: string): string {
    const path = this.state.value === "live" ? `${this.path}/database/schema` : "/database/schema";
    return database ? `${path}?database=${encodeURIComponent(database)}` : path;
  }

  // schema returns the tables of a database that code may read. It loads them once for a session.
  schema(database: string): Promise<Schema> {
    const path = this.schemaPath(database);
    let loading = this.loadedSchemas.get(path);
    if (!loading) {
      loading = get<{ schema: Schema }>(path).then((answer) => answer.schema);
      this.loadedSchemas.set(path, loading);
      loading.catch(() => this.loadedSchemas.delete(path)); // the next call tries again
    }
    return loading;
  }

  // open loads what is known of a session that exists.
  async open(): Promise<void> {
    if (!this.id.value) return;
    await Promise.all([this.loadRules(), this.loadRuns()]);
  }

  // ensure returns the id of the session, which it creates if there is none. It throws a Problem.
  ensure(): Promise<string> {
    if (this.id.value) return Promise.resolve(this.id.value);
    this.creating ??= this.create().finally(() => (this.creating = undefined));
    return this.creating;
  }

  // run executes code. It keeps a refused run in the list, with the reason.
  async run(body: RunBody): Promise<Run> {
    const run = new Run(body.code);
    this.runs.value = [run, ...this.runs.value];
    try {
      await run.start(await this.ensure(), body);
    } catch (thrown) {
      run.problem = Problem.from(thrown);
      run.status.value = "not run";
    }
    if (run.problem) this.learn(run.problem);
    this.changes.value++;
    return run;
  }

  // inspect sends code to be checked or completed, as in a new session if there is none: typing begins no session. The
  // service does one inspection of a sandbox at a time.
  inspect<T>(operation: "check" | "complete", body: Record<string, unknown>): Promise<T> {
    const answer = this.inspecting.then(() =>
      this.id.value
        ? post<T>(`${this.path}/${operation}`, body)
        : post<T>(`/sandbox/${operation}`, { ...body, config: this.creation }),
    );
    this.inspecting = answer.catch(() => {});
    return answer;
  }

  // end removes the sandbox. Its runs stay in the history.
  async end(): Promise<void> {
    try {
      await remove(this.path);
      this.state.value = "ended";
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  // leave stops reading the runs, which continue.
  leave(): void {
    for (const run of this.runs.value) run.leave();
  }

  // learn takes up the end of the session from a problem, and reports whether it has ended.
  learn(problem: Problem): boolean {
    if (!this.id.value || (problem.status !== 404 && problem.status !== 410)) return false;
    this.state.value = "ended";
    return true;
  }

  private async create(): Promise<string> {
    this.state.value = "opening";
    this.problem.value = undefined;
    try {
      const made = await post<{ sandbox_id: string; data: { config: Limits } }>("/sandbox/create", this.creation);
      this.limits.value = made.data.config;
      this.id.value = made.sandbox_id;
      this.state.value = "live";
    } catch (thrown) {
      this.state.value = "none";
      throw thrown;
    }
    void this.loadRules();
    return this.id.value;
  }

  private async loadRules(): Promise<void> {
    try {
      const rules = await get<{ limits: Limits; functions: Record<string, Helper[]> }>(`${this.path}/help/functions`);
      this.limits.value = rules.limits;
      this.helpers.value = rules.functions;
      if (this.state.value === "opening") this.state.value = "live";
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  private async loadRuns(): Promise<void> {
    try {
      const page = await get<{ executions: Summary[]; next?: string }>("/executions", {
        sandbox_id: this.id.value,
        limit: formerRuns,
      });
      const known = new Set(this.runs.value.map((run) => run.id));
      const former = page.executions.filter((e) => !known.has(e.execution_id)).map(Run.of);
      this.runs.value = [...this.runs.value, ...former];
      if (page.next) {
        const { total_executions: total } = await get<{ total_executions: number }>(`${this.path}/history`, {
          limit: 1,
        });
        this.unlisted.value = Math.max(0, total - page.executions.length);
      }
      for (const [index, run] of former.entries()) {
        if (index >= loadedRuns && run.isOver) continue;
        void run.load().then(() => this.changes.value++);
      }
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  private fail(thrown: unknown): void {
    const problem = Problem.from(thrown);
    if (!this.learn(problem)) this.problem.value = problem;
  }
}

// advice says what a person can do about a problem of the playground, or "".
export function advice(problem: Problem): string {
  switch (problem.status) {
    case 0:
      return "Your code is kept. Try again when the service can be reached.";
    case 403:
      return "Your key may not do this. An admin can give you another key.";
    case 409:
      return "Something else runs in this session. Wait until it has ended, or stop it.";
    case 413:
    case 422:
      return "Nothing has run. Change what the message names, and run again.";
    case 429:
      return "Nothing has run, and your code is kept. You have reached a limit: wait a moment, or end sandboxes that you no longer need.";
    case 503:
      return "Nothing has run, and your code is kept. The service is busy: try again in a few seconds.";
    default:
      return "";
  }
}
