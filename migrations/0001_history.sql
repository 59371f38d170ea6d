CREATE TABLE sandboxes (
  id text PRIMARY KEY,
  owner text NOT NULL,
  policy jsonb NOT NULL,
  ephemeral boolean NOT NULL,
  state text NOT NULL,
  created_at timestamptz NOT NULL,
  ended_at timestamptz,
  node text NOT NULL DEFAULT '' -- the node that had it; '' if it was imported
);
CREATE INDEX ON sandboxes (created_at DESC, id DESC);
CREATE INDEX ON sandboxes (created_at DESC, id DESC) WHERE NOT ephemeral;
CREATE INDEX ON sandboxes (owner, created_at DESC, id DESC);
CREATE INDEX ON sandboxes (state, created_at DESC, id DESC);

-- One row for each execution. The service inserts it from its write-ahead log some 50 ms after the
-- execution began or, if the execution has ended by then, after its end. record is the execution
-- as the API returns it: JSON text, in bytea because neither text nor jsonb can hold U+0000. The
-- other columns serve lists, statistics and searches, which do not read the record.
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
  record bytea NOT NULL,
  node text NOT NULL DEFAULT '', -- the node that ran it
  cpu_ms double precision NOT NULL DEFAULT 0,
  query_count integer NOT NULL DEFAULT 0,
  rows_read bigint NOT NULL DEFAULT 0,
  connection_count integer NOT NULL DEFAULT 0,
  artifact_count integer NOT NULL DEFAULT 0,
  expires_at timestamptz, -- by its key's history_days: it is deleted also if its key is gone
  tags jsonb -- texts by name; NULL: none
);
-- Each list is in the order of an index, also with the filters that select few of many rows.
CREATE INDEX ON executions (sandbox_id, created_at DESC, id DESC);
CREATE INDEX ON executions (owner, created_at DESC, id DESC);
CREATE INDEX ON executions (created_at DESC, id DESC);
CREATE INDEX ON executions (id) WHERE completed_at IS NULL;
CREATE INDEX ON executions (status, created_at DESC, id DESC);
CREATE INDEX ON executions (owner, status, created_at DESC, id DESC);
CREATE INDEX ON executions (kind, created_at DESC, id DESC);
CREATE INDEX ON executions (expires_at, id) WHERE expires_at IS NOT NULL;
CREATE INDEX ON executions USING gin (tags jsonb_path_ops) WHERE tags IS NOT NULL;

-- Counts of executions for statistics, kept by triggers: counting a million rows takes a second.
CREATE TABLE execution_totals (
  owner text NOT NULL,
  status text NOT NULL,
  executions bigint NOT NULL,
  seconds double precision NOT NULL,
  peak_memory_mb double precision NOT NULL, -- also of executions that were erased
  PRIMARY KEY (owner, status)
) WITH (fillfactor = 50);

CREATE FUNCTION count_executions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- One at a time: two transactions that count the same rows in another order would wait for each other.
  PERFORM pg_advisory_xact_lock(7236849273);
  IF TG_OP <> 'INSERT' THEN
    UPDATE execution_totals t SET executions = t.executions - o.executions, seconds = t.seconds - o.seconds
      FROM (SELECT owner, status, count(*) AS executions, sum(seconds) AS seconds FROM old_rows GROUP BY 1, 2) o
      WHERE t.owner = o.owner AND t.status = o.status;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO execution_totals
      SELECT owner, status, count(*), sum(seconds), max(memory_mb) FROM new_rows GROUP BY 1, 2
      ON CONFLICT (owner, status) DO UPDATE SET executions = execution_totals.executions + excluded.executions,
        seconds = execution_totals.seconds + excluded.seconds,
        peak_memory_mb = greatest(execution_totals.peak_memory_mb, excluded.peak_memory_mb);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_inserted AFTER INSERT ON executions REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_executions();
CREATE TRIGGER count_updated AFTER UPDATE ON executions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_executions();
CREATE TRIGGER count_deleted AFTER DELETE ON executions REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_executions();

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
  database text NOT NULL DEFAULT 'knowledge',
  PRIMARY KEY (execution_id, number)
);
CREATE INDEX ON queries (started_at DESC, execution_id DESC, number DESC);
CREATE INDEX ON queries (owner, started_at DESC, execution_id DESC, number DESC);
CREATE INDEX ON queries (status, started_at DESC, execution_id DESC, number DESC);
CREATE INDEX ON queries (fingerprint, started_at DESC);
CREATE INDEX ON queries (sandbox_id, started_at DESC);

-- The connections of ended executions. Their records have them too; this table answers which user
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
CREATE INDEX ON connections (started_at DESC, execution_id DESC, number DESC);

-- The queries and connections of running executions, as JSON. When an execution ends, its record
-- has them and its rows here are deleted.
CREATE TABLE progress (
  execution_id text NOT NULL,
  kind text NOT NULL,
  number bigint NOT NULL,
  record bytea NOT NULL,
  PRIMARY KEY (execution_id, kind, number)
);

-- Recordings of debugged runs, in the chunks that package debugger writes. A chunk can be read
-- with the definitions of the chunks before it. index tells what data contains, so that a search
-- reads few chunks. There is no foreign key: the row of an execution may be committed after its
-- first chunk.
CREATE TABLE recording_chunks (
  execution_id text NOT NULL,
  sequence integer NOT NULL,
  first_step bigint NOT NULL,
  last_step bigint NOT NULL,
  definitions bytea NOT NULL,
  index bytea NOT NULL,
  data bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (execution_id, sequence)
);
ALTER TABLE recording_chunks ALTER COLUMN data SET STORAGE EXTERNAL; -- data is compressed already
CREATE INDEX ON recording_chunks (created_at);

-- One row for each version of a file that an execution left. The blob store has the bytes, under
-- their SHA-256 sum. place is the folder of the blob store that links to them by path.
CREATE TABLE artifacts (
  id text PRIMARY KEY,
  execution_id text NOT NULL,
  sandbox_id text NOT NULL,
  owner text NOT NULL,
  place text NOT NULL,
  path text NOT NULL,
  size bigint NOT NULL,
  sha256 text NOT NULL,
  mime text NOT NULL,
  change text NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX ON artifacts (sandbox_id, place, path, created_at DESC);
CREATE INDEX ON artifacts (place, path);
CREATE INDEX ON artifacts (sha256);
CREATE INDEX ON artifacts (owner, created_at DESC, id DESC);
CREATE INDEX ON artifacts (created_at);
CREATE INDEX ON artifacts (created_at DESC, id DESC);
CREATE INDEX ON artifacts (execution_id);

-- Statements that write, which wait for an administrator's decision. record is the pending write
-- as the API returns it, as JSON. status has a column because a write leaves "pending" only once;
-- owner and execution_id have one for lists and for the limits of one user.
CREATE TABLE pending_writes (
  id text PRIMARY KEY,
  status text NOT NULL,
  created_at timestamptz NOT NULL,
  record bytea NOT NULL,
  owner text NOT NULL DEFAULT '',
  execution_id text NOT NULL DEFAULT ''
);
CREATE INDEX ON pending_writes (created_at DESC, id DESC);
CREATE INDEX ON pending_writes (owner, created_at DESC, id DESC);
CREATE INDEX ON pending_writes (owner) WHERE status = 'pending';
CREATE INDEX ON pending_writes (execution_id);

CREATE TABLE keys (
  id text PRIMARY KEY,
  name text NOT NULL,
  owner text NOT NULL,
  role text NOT NULL,
  hash bytea NOT NULL UNIQUE,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  -- Usage counts by account: a key that was created with another key shares its account, and so its
  -- limits. 0 in a limit stands for the operator's default.
  account text NOT NULL DEFAULT '',
  requests_per_minute integer NOT NULL DEFAULT 0,
  concurrent_executions integer NOT NULL DEFAULT 0,
  cpu_seconds_per_day integer NOT NULL DEFAULT 0,
  -- Who created the key: the user, and the id of the key that the user showed. Both are empty for the
  -- key that the service was started with. A revocation follows created_with.
  created_by text NOT NULL DEFAULT '',
  created_with text NOT NULL DEFAULT '',
  databases text[], -- that the key may use; NULL: all
  -- The modules to which the key restricts the code of its sandboxes, as those of a sandbox's config do.
  allowed_modules text[] NOT NULL DEFAULT '{}',
  blocked_modules text[] NOT NULL DEFAULT '{}',
  history_days integer NOT NULL DEFAULT 0, -- that history keeps its executions; 0: as long as all others
  weight integer NOT NULL DEFAULT 0 -- of its user beside other users; 0 stands for 1
);
CREATE INDEX ON keys (created_with);

CREATE TABLE cpu_usage (
  account text NOT NULL,
  day date NOT NULL,
  ms bigint NOT NULL,
  PRIMARY KEY (account, day)
);

-- One row for each node: a service with a data folder that has used this database. The row with the
-- highest epoch is of the last service that used it. That service holds an advisory lock as long as
-- it runs, and updates seen_at.
CREATE TABLE nodes (
  id text PRIMARY KEY,
  epoch bigint NOT NULL UNIQUE,
  host text NOT NULL,
  pid integer NOT NULL,
  folder text NOT NULL,
  started_at timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  ended_at timestamptz
);

-- Who viewed, exported, applied, erased, created or revoked what. The service never changes a row.
CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  key_id text NOT NULL,
  action text NOT NULL,
  object text NOT NULL,
  owner text NOT NULL,
  detail jsonb
);
CREATE INDEX ON audit (actor, id DESC);
CREATE INDEX ON audit (object, id DESC);

-- Chats of people with a language model. The record of a message is its JSON, as the API returns it;
-- execution_id is the execution whose code or output the message holds, so that both are erased together.
CREATE TABLE conversations (
  id text PRIMARY KEY,
  owner text NOT NULL,
  title text NOT NULL,
  model text NOT NULL,
  sandbox_id text NOT NULL,
  created_at timestamptz NOT NULL,
  updated_at timestamptz NOT NULL
);
CREATE INDEX ON conversations (updated_at DESC, id DESC);
CREATE INDEX ON conversations (owner, updated_at DESC, id DESC);
CREATE TABLE messages (
  conversation_id text NOT NULL REFERENCES conversations ON DELETE CASCADE,
  position integer NOT NULL, -- within the conversation, from 1
  execution_id text NOT NULL,
  erased boolean NOT NULL DEFAULT false, -- its execution was erased: the record does not change any more
  record bytea NOT NULL,
  PRIMARY KEY (conversation_id, position)
);
CREATE INDEX ON messages (execution_id) WHERE execution_id <> '';
