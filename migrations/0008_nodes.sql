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

-- The node that ran an execution or had a sandbox; '' for rows from before nodes were recorded.
ALTER TABLE executions ADD COLUMN node text NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN node text NOT NULL DEFAULT '';
