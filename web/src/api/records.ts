// The records of the API, as far as the pages show them. A field that the API leaves out when it is empty is optional.

export type Status = "created" | "running" | "completed" | "failed" | "timeout" | "cancelled" | "killed";
export type Role = "agent" | "developer" | "admin";

export const statuses: Status[] = ["created", "running", "completed", "failed", "timeout", "cancelled", "killed"];
export const kinds = [
  "execute",
  "quick-execute",
  "analyze-data",
  "debug",
  "database-query",
  "replay",
  "restore",
  "nemo",
  "jupyter",
  "e2b",
  "librechat",
];

export interface Me {
  key_id: string;
  name: string;
  user_id: string;
  role: Role;
  expires_at: string | null;
}

export interface SignInMethods {
  provider?: { name: string; path: string };
}

// Annotations are what a client said about its code.
export interface Annotations {
  tags?: Record<string, string>;
  title?: string;
}

export interface Summary extends Annotations {
  execution_id: string;
  sandbox_id: string;
  user_id: string;
  kind: string;
  status: Status;
  code: string;
  code_bytes: number;
  error: string | null;
  execution_time: number; // seconds
  cpu_ms: number;
  memory_usage: number; // MB
  queries: number;
  rows_read: number;
  connections: number;
  artifacts: number;
  recorded_steps: number; // 0: there is no recording
  is_explanation?: boolean; // it ran only to explain a statement
  replay_of?: string; // of a replay that has ended
  created_at: string;
  completed_at: string | null;
}

// Replay says how an execution that ran again compares with the original.
export interface Replay {
  of: string;
  grade: "identical" | "differs" | "diverged";
  differences?: { part: string; line?: number; original: string; replay: string }[];
  diverged?: { request: number; original?: string; replay: string };
  sources?: string[];
  rows: "log" | "now" | "mixed";
  statements_now?: number[]; // of mixed rows
  edited?: boolean;
  environment?: string; // in which it ran instead of that of the original
}

export interface Frame {
  line: number;
  function: string;
  code: string;
  column?: number; // in code, from 1; of a syntax error, whose frame has no function
  file?: string; // none: the submitted code
  variables?: Record<string, string>;
}

export interface Exception {
  type: string;
  message: string;
  line: number;
  column?: number;
  notes?: string[];
  traceback: Frame[] | null;
  chain?: Exception[]; // that led to this one, the first one first
  is_cause?: boolean; // in a chain: the next one was raised from it
  hint?: string;
  nearest?: string;
}

// Database is a database that statements can name.
export interface Database {
  name: string;
  default: boolean;
  status: "ready" | "unavailable";
  server_version?: string;
  problem?: string;
}

export interface Query {
  database?: string; // not in records of earlier versions
  query: string;
  parameters?: Record<string, unknown>;
  status: string;
  reason?: string;
  error?: string;
  rows: number;
  bytes: number;
  truncated: boolean;
  fingerprint?: string;
  computed_with_mask?: string[]; // masked columns that it computed with, as "***"
  rounded_columns?: string[]; // numeric columns that lost digits in db_frame
  duration_ms: number;
  started_at: string;
  step?: number; // of a recorded run, whose line sent it
}

export interface Connection {
  host: string;
  port: number;
  address?: string;
  status: string;
  reason?: string;
  bytes_sent: number;
  bytes_received: number;
  duration_ms: number;
  started_at: string;
}

export interface Artifact {
  artifact_id: string;
  execution_id: string;
  sandbox_id: string;
  user_id?: string;
  path: string;
  size: number;
  sha256: string;
  mime_type: string;
  url: string;
  created_at: string;
}

export interface Output {
  role?: string;
  summary: string;
  data: Record<string, unknown>;
  step?: number; // whose line showed it, if the execution was recorded
  shown_at?: string; // absent in records of earlier versions
}

export interface Note {
  timestamp: string;
  level?: string;
  message?: string;
  data?: unknown;
  name?: string;
  type?: string;
  repr?: string;
  line: number;
  function: string;
}

export interface Usage {
  wall_ms: number;
  cpu_ms: number;
  peak_memory_mb: number;
  queue_ms?: number; // not in records of earlier versions
  start_ms?: number;
  ended_by?: string;
  network_sent_bytes?: number;
  network_received_bytes?: number;
}

export interface Execution extends Annotations {
  execution_id: string;
  sandbox_id: string;
  user_id: string;
  kind: string;
  status: Status;
  code?: string;
  context?: Record<string, unknown>;
  result: unknown;
  stdout: string;
  stderr: string;
  error: string | null;
  exception?: Exception;
  execution_time: number;
  memory_usage: number;
  usage: Usage;
  debug_info: { logs: Note[]; variables: Record<string, Note[]> };
  outputs: Output[];
  artifacts: Artifact[];
  queries: Query[];
  connections: Connection[];
  recorded_steps: number;
  input_log?: object; // none: it cannot run again
  replay?: Replay;
  truncated: Record<string, number>;
  isolation: string;
  enforced_by: Record<string, string>;
  environment?: { name: string; digest: string };
  session_reset: boolean;
  created_at: string;
  completed_at: string | null;
}

export interface Statement extends Query {
  execution_id: string;
  number: number;
  sandbox_id: string;
  user_id: string;
}

export interface TopStatement {
  fingerprint: string;
  database?: string;
  query: string;
  calls: number;
  total_ms: number;
  mean_ms: number;
  p95_ms: number;
  max_ms: number;
  rows: number;
  failed: number;
  refused: number;
  captured: number; // they did not run, but waited for an admin
  reasons: Record<string, number> | null;
  users: number;
  main_users: string[]; // who sent it most often
  last_at: string;
}

export interface OwnedConnection extends Connection {
  execution_id: string;
  number: number;
  sandbox_id: string;
  user_id: string;
}

export interface Sandbox {
  sandbox_id: string;
  user_id: string;
  status: string;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
  ended_at: string | null;
  title?: string;
  first_run?: string; // the title or the code of its first execution
  runs?: number; // 1000: or more
}

// Limits is the config of a sandbox, as far as the pages show it.
export interface Limits {
  max_execution_time: number; // seconds
  max_memory_mb: number;
  cpu_percent: number; // 100 is one CPU
  max_threads: number;
  max_processes: number;
  max_rows: number; // of one query
  max_output_size: number; // bytes of each stream
  upload_max_bytes: number; // all uploads
  workspace_max_bytes: number;
  file_max_bytes: number;
  lifetime: number; // seconds
  idle_timeout: number; // seconds
  record: "never" | "always";
  enable_file_access: boolean;
  enable_network_access: boolean;
  allowed_hosts: string[];
  allowed_modules: string[]; // empty: those of the profile
  blocked_modules: string[];
  environment: string;
  profile: string;
  write_policy: "reject" | "capture";
}

export interface SandboxDetails extends Sandbox {
  config: Limits;
  isolation?: string; // of an active one
}

export interface Totals {
  executions: number;
  failed: number;
  rows_read: number;
  cpu_ms: number;
}

// Activity sums up executions, for charts. Hours without executions are missing.
export interface Activity {
  since: string;
  hours: ({ hour: string } & Totals)[] | null;
  users: ({ user_id: string } & Totals)[] | null;
  keys: { key_id: string; name: string; user_id: string; day: string; cpu_ms: number }[] | null;
}

export interface PendingWrite {
  id: string;
  sandbox_id: string;
  execution_id: string;
  user_id: string;
  database?: string; // not in records of earlier versions
  query: string;
  parameters: Record<string, unknown> | null;
  types?: Record<string, string>;
  plan: unknown;
  row_estimate: number;
  alarms?: ("no-condition" | "many-rows")[];
  status: "pending" | "applying" | "unknown" | "applied" | "failed" | "rejected";
  created_at: string;
  decided_by?: string;
  decided_at?: string | null;
  reason?: string;
  affected_rows: number;
  has_undo?: boolean;
  error?: string;
}

// WriteUndo says how an applied write can be undone.
export interface WriteUndo {
  write_id: string;
  rows: number;
  script?: string;
  missing?: string; // why there is no script
  cannot: string[];
}

// WriteSample has rows that a pending write would affect. affected_rows is null if they were not counted.
export interface WriteSample {
  rows: Record<string, unknown>[];
  affected_rows: number | null;
  count_error?: string;
}

// WritePreview has rows that a pending write changed before it was rolled back.
export interface WritePreview {
  affected_rows: number;
  rows: { before: Record<string, unknown> | null; after: Record<string, unknown> | null }[];
}

// KeyLimits has the limits of a key that are its own: for others those of all keys hold, and the weight 1.
export interface KeyLimits {
  requests_per_minute?: number;
  concurrent_executions?: number;
  cpu_seconds_per_day?: number;
  history_days?: number;
  weight?: number; // relative to other users
}

export interface Key {
  id: string;
  name: string;
  user_id: string;
  role: Role;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  limits: KeyLimits;
  databases?: string[]; // missing: all
  allowed_modules?: string[]; // missing: those of the profile
  blocked_modules?: string[];
  created_by?: string;
}

export interface AuditEntry {
  id: string | number;
  at: string;
  user_id: string;
  key_id: string;
  action: string;
  object: string;
  detail?: unknown;
  statement?: string; // of a pending write
}

export interface Occupancy {
  now: number;
  max: number;
}

export interface SystemStatus {
  version: string;
  started_at: string;
  isolation: string;
  enforced_by: Record<string, string>;
  sandboxes: Occupancy;
  sandboxes_per_user: number;
  executions: Occupancy;
  input_log: "rows" | "hashes" | "off";
  history: {
    waiting_records: number;
    waiting_bytes: number;
    waiting_seconds: number;
    database_bytes: number;
    free_bytes: number;
    error?: string;
  };
  retention: {
    max_age_seconds: number; // 0: no limit
    max_bytes: number; // 0: no limit
    deleting: boolean;
    deleted_executions: number; // since the start
  };
  environments: { name: string; digest: string; python: string; packages: number; modules: string[] | null }[] | null;
  warm_pools: WarmPool[];
}

// WarmPool is an interpreter that has imported packages, with the guests that were forked from it.
export interface WarmPool {
  environment: string;
  name: string;
  modules: string[];
  warm: boolean;
  waiting: Occupancy;
  in_use: number;
  problem?: string;
}

export interface StepVariable {
  name: string;
  value: string;
  type: string;
  ref?: number;
  length?: number;
}

export interface StepFrame {
  frame: number;
  function: string;
  line_number: number;
  line_code: string;
  unread?: string;
  exception?: string;
  variables: StepVariable[] | null;
  total_variables: number;
}

export interface StepView {
  step: number;
  total_steps: number;
  lane: string;
  frames: StepFrame[] | null; // innermost first
  globals: StepVariable[] | null;
  total_globals: number;
}

export interface VariableChange {
  seen_at: number; // the first step at which the new value is there
  step: number; // the step whose line set it
  line_number: number;
  line_code: string;
  function: string;
  value: string;
  type: string;
}

// Finding is what may explain a wrong value. From a score of 70 on, numbers of the run show that it had an effect.
export interface Finding {
  kind: string;
  step?: number;
  line_number?: number;
  text: string;
  score: number;
}

// Fact is what an expression got and gave.
export interface Fact {
  line: number;
  column: number;
  code: string;
  kind: string;
  score: number;
  text: string;
}

export interface Why {
  name: string;
  value?: string;
  type?: string;
  findings: Finding[] | null;
  steps:
    | {
        step: number;
        line_number: number;
        line_code: string;
        name?: string; // that it set
        value?: string;
        first_value?: string; // of a line that ran often
        role: string;
        times: number; // how often the line ran
        reads: { name: string; value: string }[] | null;
      }[]
    | null;
  limits: string[] | null; // what the answer leaves out
  not_looked_at: string[] | null; // what may explain a wrong value, too
  facts?: Fact[];
  replay_id?: string; // the execution that found the facts
  cell?: Cell; // if the question is a path, such as rows[3]["x"]
}

// Cell is a value of a run and what it was made from.
export interface Cell {
  value: string;
  from: CellStep[];
  ends?: string; // where the steps end, and why
}

export interface CellStep {
  line: number;
  code: string;
  what: string;
  rows: number[]; // the first ones
  total_rows: number;
  of: number; // the rows of the table
  cells: { row: string; column: string; value: string }[]; // the first ones
  total_cells: number;
  times: number;
}

export interface RecordedTable {
  columns: { name: string; dtype: string; missing: number }[];
  rows: { label: string; cells: string[] }[];
  kept: number; // rows in the recording
  total_columns: number; // of the object; the recording has the first ones
}

export interface RecordedObject extends StepVariable {
  exactness: "exact" | "truncated" | "sampled" | "unread";
  items: StepVariable[] | null;
  kept: number;
  table?: RecordedTable;
}

export interface DebugPosition {
  state: "running" | "stopped" | "ended";
  reason?: string;
  description?: string;
  step?: number;
  total_steps: number;
  live: boolean; // the program itself has stopped here
  line_number?: number;
  function?: string;
  lane?: number; // number of the thread or task, which commands take as threadId
  changed?: string[];
}

export interface DebugBreakpoint {
  id: number;
  verified: boolean;
  line: number;
  message?: string;
  condition?: string;
  hitCondition?: string;
  logMessage?: string;
}

export interface DebugSessionRecord {
  session_id: string;
  sandbox_id?: string;
  execution_id: string;
  breakpoints?: DebugBreakpoint[];
  where: DebugPosition;
  result?: Execution;
}

export interface DebugVariable {
  name: string;
  value: string;
  type?: string;
  variablesReference: number;
  namedVariables?: number; // its first parts
  indexedVariables?: number; // its items, which follow
}
