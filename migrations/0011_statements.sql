-- The statements of ended executions. Their records have them too, with their parameters; this table
-- answers which user sent which statement, and how long it took.
CREATE TABLE queries (
  execution_id text NOT NULL,
  number integer NOT NULL, -- within the execution, from 1
  sandbox_id text NOT NULL,
  owner text NOT NULL,
  sql text NOT NULL,
  fingerprint text NOT NULL,
  status text NOT NULL,
  reason text NOT NULL,
  error text NOT NULL,
  rows bigint NOT NULL,
  bytes bigint NOT NULL,
  truncated boolean NOT NULL,
  milliseconds double precision NOT NULL,
  started_at timestamptz NOT NULL,
  PRIMARY KEY (execution_id, number)
);

-- What lists show of an execution's record, so that they do not read it. The service fills these
-- columns and the table above for the executions that are there, and then runs the next migration.
ALTER TABLE executions
  ADD COLUMN cpu_ms double precision NOT NULL DEFAULT 0,
  ADD COLUMN query_count integer NOT NULL DEFAULT 0,
  ADD COLUMN rows_read bigint NOT NULL DEFAULT 0,
  ADD COLUMN connection_count integer NOT NULL DEFAULT 0,
  ADD COLUMN artifact_count integer NOT NULL DEFAULT 0;
