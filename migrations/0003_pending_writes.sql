-- Statements that would write, captured for an admin to decide on. record is the
-- write as the API shows it; status is beside it, for a write leaves pending once.
CREATE TABLE pending_writes (
  id text PRIMARY KEY,
  status text NOT NULL,
  created_at timestamptz NOT NULL,
  record bytea NOT NULL
);
CREATE INDEX ON pending_writes (created_at DESC, id DESC);
