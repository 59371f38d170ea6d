CREATE TABLE sandboxes (
  id text PRIMARY KEY,
  owner text NOT NULL,
  policy jsonb NOT NULL,
  ephemeral boolean NOT NULL,
  state text NOT NULL,
  created_at timestamptz NOT NULL,
  ended_at timestamptz
);
CREATE INDEX ON sandboxes (state) WHERE state = 'active';

-- One row an execution, which comes here by way of the service's log: when it has
-- begun, or, where it is over by then, when it has ended. record is the execution as the API shows it, as JSON text in
-- bytea: neither text nor jsonb can hold U+0000, and nothing may be lost. The
-- other columns are what lists, statistics and searches need.
CREATE TABLE executions (
  id text PRIMARY KEY,
  sandbox_id text NOT NULL,
  owner text NOT NULL,
  kind text NOT NULL,
  status text NOT NULL,
  code text NOT NULL,
  error text,
  seconds double precision NOT NULL DEFAULT 0,
  memory_mb double precision NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL,
  completed_at timestamptz,
  record bytea NOT NULL
);
CREATE INDEX ON executions (sandbox_id, created_at DESC, id DESC);
CREATE INDEX ON executions (owner, created_at DESC, id DESC);
CREATE INDEX ON executions (created_at DESC, id DESC);
CREATE INDEX ON executions (id) WHERE completed_at IS NULL;

CREATE TABLE keys (
  id text PRIMARY KEY,
  name text NOT NULL,
  owner text NOT NULL,
  role text NOT NULL,
  hash bytea NOT NULL UNIQUE,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz
);
