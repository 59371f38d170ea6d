-- The databases that a key may use; NULL: all. The name of the database that a statement was sent to;
-- '': from before databases had names.
ALTER TABLE keys ADD COLUMN databases text[];
ALTER TABLE queries ADD COLUMN IF NOT EXISTS database text NOT NULL DEFAULT '';
