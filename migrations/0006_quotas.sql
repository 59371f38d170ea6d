-- The limits of a key; 0 stands for the operator's default. Usage counts by account: a key that
-- was created with another key shares its account, and so its limits.
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
