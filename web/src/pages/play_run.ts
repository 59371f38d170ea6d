import { signal } from "@preact/signals";
import { get, post } from "../api/client";
import { follow, isFinal, type ServerEvent, startExecution } from "../api/events";
import { Problem } from "../api/problem";
import type { Execution, Note, Output, Query, Summary } from "../api/records";
import { TextTail } from "../parts/terminal_text";

// maxItems is the maximum number of outputs, statements or notes of one run that the page keeps: all outputs that a run may have.
const maxItems = 61;

const drawInterval = 80; // milliseconds between two drawings of what a run prints

export interface RunBody {
  code: string;
  context?: Record<string, unknown>;
  record?: boolean;
}

// Run is one execution of the session. Whoever draws it reads version, which changes with it.
export class Run {
  readonly version = signal(0);
  readonly status = signal<string>("starting");
  id = "";
  createdAt = new Date().toISOString();
  stdout = new TextTail();
  stderr = new TextTail();
  logs: Note[] = [];
  queries: Query[] = [];
  outputs: Output[] = [];
  left = { outputs: 0, queries: 0, logs: 0 }; // items beyond maxItems
  isCut = { stdout: false, stderr: false }; // the service keeps no more of it
  isLost = false; // the connection; it is tried again
  isCancelled = false; // the person has pressed Stop
  record: Execution | undefined; // when it has ended, without its texts
  problem: Problem | undefined; // the service has not run the code, or the record cannot be loaded
  isLoaded = true; // false: only its summary is known
  isWhole = true; // false: code is the beginning of the code

  private stop = () => {};
  private timer = 0;
  private onEnd: () => void = () => {};

  constructor(public code: string) {}

  // of returns a run of the session's history. Its record is not loaded yet.
  static of(summary: Summary): Run {
    const run = new Run(summary.code);
    run.id = summary.execution_id;
    run.createdAt = summary.created_at;
    run.status.value = summary.status;
    run.isLoaded = run.isWhole = false;
    return run;
  }

  get isOver(): boolean {
    return this.status.value !== "starting" && this.status.value !== "running" && this.status.value !== "created";
  }

  // start runs the code, and returns when the run has ended or the service has refused it.
  start(sandbox: string, body: RunBody): Promise<void> {
    return new Promise((resolve) => {
      this.onEnd = resolve;
      this.stop = startExecution(`/sandbox/${encodeURIComponent(sandbox)}/execute`, body, {
        ...this.listener,
        onRefused: (problem) => this.fail(problem),
      });
    });
  }

  // load loads the record of a run of the history, or follows it if it still runs.
  async load(): Promise<void> {
    this.isLoaded = true;
    try {
      const record = await get<Execution>(`/executions/${encodeURIComponent(this.id)}`);
      this.code = record.code ?? this.code;
      this.isWhole = true;
      this.status.value = record.status;
      if (this.isOver) return this.end(record);
      await new Promise<void>((resolve) => {
        this.onEnd = resolve;
        this.stop = follow(`/executions/${encodeURIComponent(this.id)}`, {}, this.listener);
      });
    } catch (thrown) {
      this.problem = Problem.from(thrown);
      this.draw();
    }
  }

  // cancel ends the run. The promise of start resolves when it has ended.
  async cancel(): Promise<void> {
    this.isCancelled = true;
    this.draw();
    if (!this.id) return; // when it begins
    try {
      await post(`/executions/${encodeURIComponent(this.id)}/cancel`);
    } catch (thrown) {
      if (this.isOver) return; // it ended meanwhile
      this.isCancelled = false;
      this.problem = Problem.from(thrown);
      this.draw();
    }
  }

  // leave stops reading. The run continues.
  leave(): void {
    this.stop();
    window.clearTimeout(this.timer);
    this.onEnd();
  }

  private readonly listener = {
    onOpen: () => {
      this.isLost = false;
      this.drawSoon();
    },
    onLost: (problem: Problem) => {
      if (isFinal(problem)) return this.fail(problem);
      this.isLost = true;
      this.drawSoon();
    },
    onEnd: () => void this.load(),
    onEvent: (event: ServerEvent) => this.take(event),
  };

  private take({ name, data }: ServerEvent): void {
    const body: unknown = JSON.parse(data);
    switch (name) {
      case "started":
        this.id = (body as { execution_id: string }).execution_id;
        this.status.value = "running";
        if (this.isCancelled) void this.cancel();
        break;
      case "stdout":
      case "stderr":
        this[name].push((body as { text: string }).text);
        this.isCut[name] ||= (body as { truncated?: boolean }).truncated === true;
        break;
      case "debug":
        this.add("logs", body as Note);
        break;
      case "query":
        this.add("queries", body as Query);
        break;
      case "output":
        this.add("outputs", body as Output);
        break;
      case "done":
        this.stop();
        this.end(body as Execution);
        return;
    }
    this.drawSoon();
  }

  private add(list: "logs" | "queries" | "outputs", item: Note | Query | Output): void {
    if (this[list].length < maxItems) (this[list] as unknown[]).push(item);
    else this.left[list]++;
  }

  private end(answer: Execution): void {
    // An answer has no empty parts.
    const record: Execution = {
      ...answer,
      outputs: answer.outputs ?? [],
      artifacts: answer.artifacts ?? [],
      queries: answer.queries ?? [],
      connections: answer.connections ?? [],
      truncated: answer.truncated ?? {},
      debug_info: answer.debug_info ?? { logs: [], variables: {} },
      stdout: "",
      stderr: "",
    };
    this.stdout = TextTail.of(answer.stdout ?? "");
    this.stderr = TextTail.of(answer.stderr ?? "");
    const first = <T>(list: T[], name: "outputs" | "queries" | "logs"): T[] => {
      this.left[name] = Math.max(0, list.length - maxItems) + (record.truncated[name] ?? 0);
      return list.slice(0, maxItems);
    };
    this.outputs = first(record.outputs, "outputs");
    this.queries = first(record.queries, "queries");
    this.logs = first(record.debug_info.logs, "logs");
    this.record = record;
    this.isLost = false;
    this.status.value = record.status;
    this.draw();
    this.onEnd();
  }

  private fail(problem: Problem): void {
    this.problem = problem;
    this.isLost = false;
    if (!this.id) this.status.value = "not run";
    this.draw();
    this.onEnd();
  }

  private draw(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
    this.version.value++;
  }

  private drawSoon(): void {
    this.timer ||= window.setTimeout(() => this.draw(), drawInterval);
  }
}
