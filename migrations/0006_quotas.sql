-- What a key may use; 0 is what the operator has set for all. What keys use is counted
-- by account: a key that another made has its account, and so no more than it.
ALTER TABLE keys
  ADD COLUMN account text NOT NULL DEFAULT '',
  ADD COLUMN requests_per_minute integer NOT NULL DEFAULT 0,
  ADD COLUMN concurrent_executions integer NOT NULL DEFAULT 0,
  ADD COLUMN cpu_seconds_per_day integer NOT NULL DEFAULT 0;
UPDATE keys SET account = id;

CREATE TABLE cpu_usage (
  account text NOT NULL,
  day date NOT NULL,
  ms bigint NOT NULL,
  PRIMARY KEY (account, day)
);
