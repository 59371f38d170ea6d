-- The databases that a key may use; NULL: all. The name of the database that a statement was sent to:
-- before databases had names, all went to the one that is named knowledge now.
ALTER TABLE keys ADD COLUMN databases text[];
ALTER TABLE queries ADD COLUMN IF NOT EXISTS database text NOT NULL DEFAULT 'knowledge';
