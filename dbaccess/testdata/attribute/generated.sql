-- Tables whose rows are also rows of another type, and functions of the owner that can be called with them or with a
-- scalar.
CREATE TABLE notes (id int PRIMARY KEY, body text);
INSERT INTO notes VALUES (1, 'a');
CREATE TABLE child_notes (extra int) INHERITS (notes);
INSERT INTO child_notes VALUES (2, 'b', 3);
CREATE TABLE parted_notes (id int, body text) PARTITION BY LIST (id);
CREATE TABLE part_of_notes PARTITION OF parted_notes FOR VALUES IN (1);
INSERT INTO parted_notes VALUES (1, 'p');
CREATE TYPE note_type AS (id int, body text);
CREATE TABLE typed_notes OF note_type;
INSERT INTO typed_notes VALUES (1, 't');
CREATE VIEW viewed_notes AS SELECT id, body FROM notes;
CREATE TABLE holders (id int, held note_type, many note_type[]);
INSERT INTO holders VALUES (1, ROW(1, 'h'), ARRAY[ROW(1, 'm')::note_type]);
CREATE FUNCTION of_note(notes) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'called' $$;
CREATE FUNCTION of_parted(parted_notes) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'called' $$;
CREATE FUNCTION of_type(note_type) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'called' $$;
CREATE FUNCTION of_view(viewed_notes) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'called' $$;
CREATE FUNCTION of_row(record) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN 'called'; END $$;
CREATE FUNCTION of_any(anyelement) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'called' $$;
CREATE FUNCTION of_int(int) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'called' $$;
CREATE FUNCTION of_text(text, int DEFAULT 1) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'called' $$;
CREATE FUNCTION of_ints(VARIADIC int[]) RETURNS text LANGUAGE sql SECURITY DEFINER AS $$ SELECT 'called' $$;
CREATE FUNCTION next_state(bigint, int) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE AGGREGATE of_group(int) (SFUNC = next_state, STYPE = bigint, INITCOND = '0');
CREATE FUNCTION is_good(int) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS 'SELECT true';
CREATE DOMAIN checked_int AS int CHECK (is_good(VALUE));
CREATE TABLE written (id int PRIMARY KEY, body text);
-- Columns with the names of functions.
CREATE TABLE named (id int, pg_sleep double precision, ts_stat text, of_int int, of_row text, of_any text, checked_int int);
INSERT INTO named VALUES (1, 0, 'column', 2, 'column', 'column', 3);
CREATE VIEW viewed_named AS SELECT * FROM named;
-- Tables with these columns and the names that PostgreSQL gives items of FROM without an alias.
CREATE TABLE "unnest" (LIKE named);
CREATE TABLE "coalesce" (LIKE named);
CREATE TABLE "xmltable" (LIKE named);
CREATE TABLE excluded (LIKE named);
GRANT SELECT ON ALL TABLES IN SCHEMA public TO glasshouse_reader;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC;
