-- What executions that go on have done so far: their statements and connections, as
-- JSON. An execution's end has them in its own record, and they are gone from here.
CREATE TABLE progress (
  execution_id text NOT NULL,
  kind text NOT NULL,
  number bigint NOT NULL,
  record bytea NOT NULL,
  PRIMARY KEY (execution_id, kind, number)
);
