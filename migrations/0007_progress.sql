-- The queries and connections of running executions, as JSON. When an execution ends, its record
-- has them and its rows here are deleted.
CREATE TABLE progress (
  execution_id text NOT NULL,
  kind text NOT NULL,
  number bigint NOT NULL,
  record bytea NOT NULL,
  PRIMARY KEY (execution_id, kind, number)
);
