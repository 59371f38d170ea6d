-- For how many days history keeps the executions of a key; 0: as long as all others. An execution has
-- the time of its deletion itself, so that it is deleted also if its key is gone.
ALTER TABLE keys ADD COLUMN history_days integer NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN expires_at timestamptz;
CREATE INDEX ON executions (expires_at, id) WHERE expires_at IS NOT NULL;
