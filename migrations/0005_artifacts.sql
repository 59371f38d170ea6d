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
