-- The tables and views in a statement, and those in its views. Statements of earlier versions have none.
ALTER TABLE queries ADD tables text[] NOT NULL DEFAULT '{}';
CREATE INDEX queries_tables ON queries USING gin (tables);
