-- The stages of statements, as they were computed last: JSON of package service/run. They are computed after the
-- execution has ended, so its record cannot have them, and whoever reads the execution may not read them if other
-- columns are masked since, so they are no artifact.
CREATE TABLE kept_stages (
  execution_id text NOT NULL REFERENCES executions ON DELETE CASCADE,
  number integer NOT NULL, -- of the statement within the execution, from 1
  record bytea NOT NULL,
  PRIMARY KEY (execution_id, number)
);
ALTER TABLE kept_stages ALTER COLUMN record SET COMPRESSION pglz;
