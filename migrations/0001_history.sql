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

-- One row for each execution. The service inserts it from its write-ahead log some 50 ms after the
-- execution began or, if the execution has ended by then, after its end. record is the execution
-- as the API returns it: JSON text, in bytea because neither text nor jsonb can hold U+0000. The
-- other columns serve lists, statistics and searches.
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
