-- Each list is in the order of an index, also with the filters that select few of many rows.
CREATE INDEX ON executions (status, created_at DESC, id DESC);
CREATE INDEX ON executions (owner, status, created_at DESC, id DESC);
CREATE INDEX ON executions (kind, created_at DESC, id DESC);
CREATE INDEX ON queries (started_at DESC, execution_id DESC, number DESC);
CREATE INDEX ON queries (owner, started_at DESC, execution_id DESC, number DESC);
CREATE INDEX ON queries (status, started_at DESC, execution_id DESC, number DESC);
CREATE INDEX ON queries (fingerprint, started_at DESC);
CREATE INDEX ON queries (sandbox_id, started_at DESC);
CREATE INDEX ON connections (started_at DESC, execution_id DESC, number DESC);
CREATE INDEX ON artifacts (created_at DESC, id DESC);
CREATE INDEX ON artifacts (execution_id);
ALTER TABLE pending_writes ADD COLUMN execution_id text NOT NULL DEFAULT '';
UPDATE pending_writes SET execution_id = coalesce(convert_from(record, 'UTF8')::json ->> 'execution_id', '');
CREATE INDEX ON pending_writes (execution_id);
CREATE INDEX ON sandboxes (created_at DESC, id DESC);
CREATE INDEX ON sandboxes (created_at DESC, id DESC) WHERE NOT ephemeral;
CREATE INDEX ON sandboxes (owner, created_at DESC, id DESC);
DROP INDEX sandboxes_state_idx;
CREATE INDEX ON sandboxes (state, created_at DESC, id DESC);

-- Counts of executions for statistics, kept by triggers: counting a million rows takes a second.
CREATE TABLE execution_totals (
  owner text NOT NULL,
  status text NOT NULL,
  executions bigint NOT NULL,
  seconds double precision NOT NULL,
  peak_memory_mb double precision NOT NULL, -- also of executions that were erased
  PRIMARY KEY (owner, status)
) WITH (fillfactor = 50);
INSERT INTO execution_totals
  SELECT owner, status, count(*), sum(seconds), max(memory_mb) FROM executions GROUP BY owner, status;

CREATE FUNCTION count_executions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- One at a time: two transactions that count the same rows in another order would wait for each other.
  PERFORM pg_advisory_xact_lock(7236849273);
  IF TG_OP <> 'INSERT' THEN
    UPDATE execution_totals t SET executions = t.executions - o.executions, seconds = t.seconds - o.seconds
      FROM (SELECT owner, status, count(*) AS executions, sum(seconds) AS seconds FROM old_rows GROUP BY 1, 2) o
      WHERE t.owner = o.owner AND t.status = o.status;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO execution_totals
      SELECT owner, status, count(*), sum(seconds), max(memory_mb) FROM new_rows GROUP BY 1, 2
      ON CONFLICT (owner, status) DO UPDATE SET executions = execution_totals.executions + excluded.executions,
        seconds = execution_totals.seconds + excluded.seconds,
        peak_memory_mb = greatest(execution_totals.peak_memory_mb, excluded.peak_memory_mb);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_inserted AFTER INSERT ON executions REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_executions();
CREATE TRIGGER count_updated AFTER UPDATE ON executions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_executions();
CREATE TRIGGER count_deleted AFTER DELETE ON executions REFERENCING OLD TABLE AS old_rows
  FOR EACH STATEMENT EXECUTE FUNCTION count_executions();

-- Who viewed, exported, applied, erased, created or revoked what. The service never changes a row.
CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT now(),
  actor text NOT NULL,
  key_id text NOT NULL,
  action text NOT NULL,
  object text NOT NULL,
  owner text NOT NULL,
  detail jsonb
);
CREATE INDEX ON audit (actor, id DESC);
CREATE INDEX ON audit (object, id DESC);
