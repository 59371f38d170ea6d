// The answers of the API to questions about a statement. A number that is not known is absent, and never 0.

export interface Sample {
  columns: string[];
  rows: (string | null)[][];
  more_columns?: number;
}

export interface Keys extends Sample {
  kind: "repeated" | "lost";
  side: "left" | "right";
}

export type StageKind =
  | "cte"
  | "from"
  | "join"
  | "where"
  | "group"
  | "having"
  | "project"
  | "distinct"
  | "set"
  | "order"
  | "limit"
  | "grouping-set"
  | "filter"
  | "window"
  | "subquery"; // all of a correlated one

export interface Stage {
  id: number;
  block: number;
  kind: StageKind;
  join?: "inner" | "left" | "right" | "full" | "cross";
  name?: string;
  text: string;
  from_line: number;
  to_line: number;
  reads: number; // the block whose rows it reads; -1: none
  part_of?: number; // the stage that it is a part of, and does not change; -1: none
  rows_in?: number;
  rows_right?: number;
  rows_out?: number;
  lost?: number;
  null?: number;
  multiplied?: {
    pairs?: number;
    left_unmatched?: number;
    right_unmatched?: number;
    max_left?: number;
    max_right?: number;
    null_keys?: number;
  };
  empty_groups?: number; // of a filter
  window?: { partitions: number; largest: number; tied?: number };
  state: "counted" | "estimated" | "skipped" | "refused" | "failed";
  reason?: string;
  message?: string;
  estimated_out?: number;
  sample?: Sample;
  keys?: Keys[];
}

export interface Block {
  id: number;
  kind: "main" | "cte" | "subquery" | "arm" | "view" | "correlated";
  name?: string;
  from_line: number;
  to_line: number;
  rows?: number;
  reason?: string;
  stages: Stage[];
}

export interface Finding {
  kind: string;
  score: number;
  line: number;
  stage: number; // -1: none
  clause: string;
  text: string;
}

export interface Stages {
  lines: number;
  rows: number;
  truncated: boolean;
  same_result?: string;
  schema_changed?: boolean;
  ms: number;
  total_ms: number;
  statements: number;
  blocks: Block[];
  findings: Finding[];
  not_looked: string[];
}

export interface TableRows {
  table: string;
  items: string[];
  lines: number[];
  key: string[];
  is_primary_key: boolean;
  rows?: number;
  distinct?: number;
  is_read?: boolean;
  state: Stage["state"];
  reason?: string;
  message?: string;
  first?: Sample;
}

export interface WhyCell {
  row: number;
  column: string;
  value?: string; // absent: NULL
  same_result?: string;
  predicate: string;
  tables: TableRows[];
  check: { state: "same" | "differs" | "not-checked"; value?: string; message?: string };
  not_looked: string[];
}

export interface FollowedStage {
  id: number;
  block?: string;
  kind: StageKind;
  text: string;
  from_line: number;
  rows_in?: number;
  rows?: number;
  null?: number;
  state: Stage["state"];
  reason?: string;
  message?: string;
}

export interface WhyNot {
  columns: { name: string; meaning: string; value: unknown }[];
  missing?: boolean;
  same_result?: string;
  stages: FollowedStage[];
  lost?: FollowedStage;
  because?: string;
  not_looked: string[];
}
