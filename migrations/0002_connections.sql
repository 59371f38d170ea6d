-- The connections of executions. Their records have them too; this table answers which user
-- reached which host, and when.
CREATE TABLE connections (
  execution_id text NOT NULL,
  number integer NOT NULL, -- within the execution, from 1
  sandbox_id text NOT NULL,
  owner text NOT NULL,
  host text NOT NULL,
  port integer NOT NULL,
  address text NOT NULL, -- ip:port; empty if there was no connection
  status text NOT NULL,
  reason text NOT NULL,
  bytes_sent bigint NOT NULL,
  bytes_received bigint NOT NULL,
  milliseconds double precision NOT NULL,
  started_at timestamptz NOT NULL,
  PRIMARY KEY (execution_id, number)
);
CREATE INDEX ON connections (host, started_at DESC);
CREATE INDEX ON connections (owner, started_at DESC);
