-- The owner of a pending write has a column for lists and for the limits of one user.
ALTER TABLE pending_writes ADD COLUMN owner text NOT NULL DEFAULT '';
UPDATE pending_writes SET owner = coalesce(convert_from(record, 'UTF8')::json ->> 'user_id', '');
CREATE INDEX ON pending_writes (owner, created_at DESC, id DESC);
CREATE INDEX ON pending_writes (owner) WHERE status = 'pending';
