-- What debugged runs did, in chunks as package debugger writes them. A chunk stands by
-- itself once the definitions of those before it are known; index says what is in
-- data, so that a search reads few. There is no foreign key: an execution's opening
-- row may be committed later than its first chunk.
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
ALTER TABLE recording_chunks ALTER COLUMN data SET STORAGE EXTERNAL; -- compressed already
CREATE INDEX ON recording_chunks (created_at);
