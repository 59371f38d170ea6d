-- The modules to which a key restricts the code of its sandboxes, as the keys of a sandbox's config do.
ALTER TABLE keys
  ADD COLUMN allowed_modules text[] NOT NULL DEFAULT '{}',
  ADD COLUMN blocked_modules text[] NOT NULL DEFAULT '{}';
