-- Who created a key: the user, and the id of the key that the user showed. Both are empty for the
-- key that the service was started with. A revocation follows created_with. For older keys the
-- account names the first key of the chain, if that was not an admin's.
ALTER TABLE keys
  ADD COLUMN created_by text NOT NULL DEFAULT '',
  ADD COLUMN created_with text NOT NULL DEFAULT '';
UPDATE keys SET created_by = owner, created_with = account WHERE account <> id;
CREATE INDEX ON keys (created_with);
