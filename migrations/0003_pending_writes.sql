-- Statements that write, which wait for an administrator's decision. record is the pending write
-- as the API returns it, as JSON. status has a column because a write leaves "pending" only once.
CREATE TABLE pending_writes (
  id text PRIMARY KEY,
  status text NOT NULL,
  created_at timestamptz NOT NULL,
  record bytea NOT NULL
);
CREATE INDEX ON pending_writes (created_at DESC, id DESC);
