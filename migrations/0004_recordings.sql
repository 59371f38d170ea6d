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
