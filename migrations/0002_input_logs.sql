-- What entered executions, so that they can run again: package sandbox/inputlog writes the logs. An execution without a
-- row has an empty log, or none: its record says which. There is no foreign key: a row may be committed before that of
-- its execution.
CREATE TABLE input_logs (
  execution_id text PRIMARY KEY,
  log bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE input_logs ALTER COLUMN log SET STORAGE EXTERNAL; -- it is compressed already
CREATE INDEX ON input_logs (created_at);
