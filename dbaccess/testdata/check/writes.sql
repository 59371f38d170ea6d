-- A case is a line "### outcome" and the statement below it, up to the next.
### read-only
INSERT INTO users VALUES (1)
### read-only
UPDATE documents SET processed = true
### read-only
DELETE FROM users
### read-only
MERGE INTO users u USING users s ON u.id = s.id WHEN MATCHED THEN DELETE
### read-only
TRUNCATE users
### read-only
DROP TABLE users
### read-only
CREATE TABLE x (a int)
### read-only
CREATE TEMP TABLE x AS SELECT 1
### read-only
SELECT * INTO x FROM users
### read-only
WITH d AS (DELETE FROM users RETURNING *) SELECT * FROM d
### read-only
SELECT * FROM (WITH d AS (UPDATE users SET name = '' RETURNING *) SELECT * FROM d) s
### read-only
SELECT * FROM users FOR UPDATE
### read-only
SELECT * FROM users FOR KEY SHARE
### read-only
COPY users TO '/tmp/x'
### read-only
COPY users TO PROGRAM 'id'
### read-only
GRANT ALL ON users TO public
### read-only
ALTER TABLE users ADD x int
### read-only
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'
### read-only
VACUUM
### read-only
REFRESH MATERIALIZED VIEW x
### read-only
EXPLAIN DELETE FROM users
### read-only
CREATE EXTENSION dblink
### read-only
COMMENT ON TABLE users IS 'x'
### read-only
INSERT INTO users (id) SELECT 1 ON CONFLICT DO NOTHING RETURNING id
### read-only
INSERT INTO users DEFAULT VALUES
### read-only
UPDATE users SET name = 'x' FROM orders WHERE false
### read-only
DELETE FROM users USING orders WHERE false
### read-only
WITH i AS (INSERT INTO users VALUES (1) RETURNING *) SELECT * FROM i
### read-only
WITH i AS (INSERT INTO users VALUES (1) RETURNING *), j AS (SELECT 1) SELECT 1
### read-only
WITH a AS (SELECT 1), m AS (DELETE FROM orders) SELECT * FROM a
### read-only
WITH x AS (SELECT 1) UPDATE users SET name = ''
### read-only
WITH x AS (SELECT 1) INSERT INTO users SELECT 1
### read-only
SELECT (WITH d AS (DELETE FROM users RETURNING 1) SELECT count(*) FROM d)
### read-only
SELECT 1 UNION (WITH d AS (DELETE FROM users RETURNING id) SELECT id FROM d)
### read-only
SELECT * FROM users FOR SHARE
### read-only
SELECT * FROM users FOR NO KEY UPDATE
### read-only
SELECT * FROM users FOR UPDATE OF users NOWAIT
### read-only
SELECT * FROM users FOR UPDATE SKIP LOCKED
### read-only
SELECT * FROM (SELECT * FROM users FOR UPDATE) s
### read-only
WITH l AS (SELECT * FROM users FOR SHARE) SELECT * FROM l
### read-only
SELECT EXISTS (SELECT 1 FROM users FOR UPDATE)
### read-only
SELECT 1 INTO x
### read-only
SELECT * INTO TEMP x FROM users
### read-only
SELECT * INTO UNLOGGED TABLE x FROM users
### read-only
WITH a AS (SELECT 1) SELECT * INTO x FROM a
### read-only
SELECT 1 INTO x UNION SELECT 2
### read-only
CREATE TABLE x AS SELECT 1
### read-only
CREATE TABLE x AS EXECUTE y
### read-only
CREATE UNLOGGED TABLE x (a int)
### read-only
CREATE MATERIALIZED VIEW x AS SELECT 1
### read-only
CREATE VIEW x AS SELECT 1
### read-only
CREATE TEMP VIEW x AS SELECT 1
### read-only
CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$
### read-only
CREATE PROCEDURE p() LANGUAGE sql AS 'SELECT 1'
### read-only
CREATE AGGREGATE a (int) (SFUNC = int4pl, STYPE = int)
### read-only
CREATE OPERATOR + (LEFTARG = text, RIGHTARG = text, FUNCTION = textcat)
### read-only
CREATE CAST (int AS text) WITH INOUT
### read-only
CREATE DOMAIN d AS int
### read-only
CREATE TYPE t AS ENUM ('a')
### read-only
CREATE TYPE t AS (a int)
### read-only
CREATE SCHEMA s
### read-only
CREATE SEQUENCE s
### read-only
CREATE INDEX ON users (name)
### read-only
CREATE UNIQUE INDEX CONCURRENTLY i ON users (id)
### read-only
CREATE TRIGGER t AFTER INSERT ON users EXECUTE FUNCTION f()
### read-only
CREATE EVENT TRIGGER t ON ddl_command_end EXECUTE FUNCTION f()
### read-only
CREATE RULE r AS ON SELECT TO users DO INSTEAD SELECT 1
### read-only
CREATE POLICY p ON users USING (true)
### read-only
CREATE ROLE r SUPERUSER
### read-only
CREATE USER r
### read-only
CREATE DATABASE d
### read-only
CREATE TABLESPACE t LOCATION '/tmp'
### read-only
CREATE SERVER s FOREIGN DATA WRAPPER w
### read-only
CREATE USER MAPPING FOR public SERVER s
### read-only
CREATE FOREIGN TABLE f (a int) SERVER s
### read-only
CREATE FOREIGN DATA WRAPPER w
### read-only
CREATE PUBLICATION p FOR ALL TABLES
### read-only
CREATE SUBSCRIPTION s CONNECTION '' PUBLICATION p
### read-only
CREATE COLLATION c FROM "C"
### read-only
CREATE CONVERSION c FOR 'UTF8' TO 'LATIN1' FROM f
### read-only
CREATE STATISTICS s ON id, name FROM users
### read-only
CREATE TEXT SEARCH CONFIGURATION c (COPY = english)
### read-only
CREATE ACCESS METHOD m TYPE INDEX HANDLER h
### read-only
CREATE LANGUAGE plpython3u
### read-only
CREATE TRANSFORM FOR int LANGUAGE sql (FROM SQL WITH FUNCTION f(internal))
### read-only
DROP SCHEMA public CASCADE
### read-only
DROP FUNCTION f()
### read-only
DROP ROLE r
### read-only
DROP DATABASE d
### read-only
DROP OWNED BY r
### read-only
REASSIGN OWNED BY a TO b
### read-only
ALTER TABLE users DISABLE ROW LEVEL SECURITY
### read-only
ALTER ROLE r SUPERUSER
### read-only
ALTER ROLE r SET search_path = x
### read-only
ALTER DATABASE d SET search_path = x
### read-only
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO public
### read-only
ALTER FUNCTION f() OWNER TO r
### read-only
ALTER SEQUENCE s RESTART
### read-only
ALTER VIEW v RENAME TO w
### read-only
GRANT r TO s
### read-only
REVOKE ALL ON users FROM public
### read-only
COPY users FROM '/etc/passwd'
### read-only
COPY users FROM PROGRAM 'id'
### read-only
COPY users FROM STDIN
### read-only
COPY users TO STDOUT
### read-only
COPY (SELECT 1) TO '/tmp/x'
### read-only
COPY (DELETE FROM users RETURNING *) TO STDOUT
### read-only
VACUUM FULL users
### read-only
ANALYZE users
### read-only
REINDEX TABLE users
### read-only
CLUSTER users
### read-only
SECURITY LABEL ON TABLE users IS 'x'
### read-only
IMPORT FOREIGN SCHEMA s FROM SERVER t INTO public
### read-only
EXPLAIN UPDATE users SET name = ''
### read-only
EXPLAIN CREATE TABLE x AS SELECT 1
### read-only
EXPLAIN INSERT INTO users VALUES (1)
### read-only
EXPLAIN WITH d AS (DELETE FROM users RETURNING *) SELECT * FROM d
### read-only
EXPLAIN SELECT * FROM users FOR UPDATE
### read-only
EXPLAIN EXECUTE x
### read-only
EXPLAIN DECLARE c CURSOR FOR SELECT 1
### read-only
REFRESH MATERIALIZED VIEW CONCURRENTLY v
### read-only
TRUNCATE users, orders CASCADE
