-- Names that people or clients gave. '' for none: then lists show what the code says.
ALTER TABLE executions ADD title text NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD title text NOT NULL DEFAULT '';

-- The beginning of what a run printed and of its result, for searches. '' before it has ended.
ALTER TABLE executions ADD output text NOT NULL DEFAULT '';

-- Lists by duration and by rows have ended executions only, so each has one entry.
CREATE INDEX executions_by_seconds ON executions (seconds DESC, id DESC) WHERE completed_at IS NOT NULL;
CREATE INDEX executions_by_rows ON executions (rows_read DESC, id DESC) WHERE completed_at IS NOT NULL;
CREATE INDEX executions_of_owner_by_seconds ON executions (owner, seconds DESC, id DESC)
  WHERE completed_at IS NOT NULL;
CREATE INDEX executions_of_owner_by_rows ON executions (owner, rows_read DESC, id DESC)
  WHERE completed_at IS NOT NULL;

-- How applied writes can be undone: sandbox.WriteUndo as JSON.
CREATE TABLE write_undos (
  write_id text PRIMARY KEY REFERENCES pending_writes ON DELETE CASCADE,
  record bytea NOT NULL
);
ALTER TABLE write_undos ALTER COLUMN record SET COMPRESSION pglz;

-- What users did in each hour, kept by the triggers of execution_totals: a chart over a million executions reads few
-- rows. An execution counts in the hour in which it began.
CREATE TABLE execution_hours (
  owner text NOT NULL,
  hour timestamptz NOT NULL,
  executions bigint NOT NULL,
  failed bigint NOT NULL, -- failed, timeout and killed
  rows_read bigint NOT NULL,
  cpu_ms double precision NOT NULL,
  PRIMARY KEY (owner, hour)
) WITH (fillfactor = 50);
CREATE INDEX ON execution_hours (hour);

CREATE OR REPLACE FUNCTION count_executions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- One at a time: two transactions that count the same rows in another order would wait for each other.
  PERFORM pg_advisory_xact_lock(7236849273);
  IF TG_OP <> 'INSERT' THEN
    UPDATE execution_totals t SET executions = t.executions - o.executions, seconds = t.seconds - o.seconds
      FROM (SELECT owner, status, count(*) AS executions, sum(seconds) AS seconds FROM old_rows GROUP BY 1, 2) o
      WHERE t.owner = o.owner AND t.status = o.status;
    UPDATE execution_hours t SET executions = t.executions - o.executions, failed = t.failed - o.failed,
        rows_read = t.rows_read - o.rows_read, cpu_ms = t.cpu_ms - o.cpu_ms
      FROM (SELECT owner, date_trunc('hour', created_at, 'UTC') AS hour, count(*) AS executions,
          count(*) FILTER (WHERE status IN ('failed', 'timeout', 'killed')) AS failed,
          sum(rows_read) AS rows_read, sum(cpu_ms) AS cpu_ms
        FROM old_rows GROUP BY 1, 2) o
      WHERE t.owner = o.owner AND t.hour = o.hour;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO execution_totals
      SELECT owner, status, count(*), sum(seconds), max(memory_mb) FROM new_rows GROUP BY 1, 2
      ON CONFLICT (owner, status) DO UPDATE SET executions = execution_totals.executions + excluded.executions,
        seconds = execution_totals.seconds + excluded.seconds,
        peak_memory_mb = greatest(execution_totals.peak_memory_mb, excluded.peak_memory_mb);
    INSERT INTO execution_hours
      SELECT owner, date_trunc('hour', created_at, 'UTC'), count(*),
          count(*) FILTER (WHERE status IN ('failed', 'timeout', 'killed')), sum(rows_read), sum(cpu_ms)
        FROM new_rows GROUP BY 1, 2
      ON CONFLICT (owner, hour) DO UPDATE SET executions = execution_hours.executions + excluded.executions,
        failed = execution_hours.failed + excluded.failed, rows_read = execution_hours.rows_read + excluded.rows_read,
        cpu_ms = execution_hours.cpu_ms + excluded.cpu_ms;
  END IF;
  RETURN NULL;
END $$;

INSERT INTO execution_hours
  SELECT owner, date_trunc('hour', created_at, 'UTC'), count(*),
      count(*) FILTER (WHERE status IN ('failed', 'timeout', 'killed')), sum(rows_read), sum(cpu_ms)
    FROM executions GROUP BY 1, 2;
