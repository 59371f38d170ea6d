-- A case is a line "### outcome" and the statement below it, up to the next.
### multiple-statements
SELECT 1; SELECT 2
### multiple-statements
SELECT 1; DROP TABLE users
### multiple-statements
COMMIT; DROP TABLE users
### statement-not-allowed
BEGIN
### statement-not-allowed
COMMIT
### statement-not-allowed
SET statement_timeout = 0
### statement-not-allowed
SET TRANSACTION READ WRITE
### setting-not-allowed
SHOW data_directory
### statement-not-allowed
PREPARE x AS SELECT 1
### statement-not-allowed
EXECUTE x
### statement-not-allowed
DECLARE c CURSOR FOR SELECT 1
### statement-not-allowed
LISTEN x
### statement-not-allowed
NOTIFY x
### statement-not-allowed
DO $$ BEGIN END $$
### statement-not-allowed
CALL p()
### statement-not-allowed
LOCK users
### statement-not-allowed
DISCARD ALL
### statement-not-allowed
LOAD 'x'
### statement-not-allowed
EXPLAIN ANALYZE SELECT 1
### statement-not-allowed
EXPLAIN (ANALYZE) SELECT 1
### statement-not-allowed
START TRANSACTION READ WRITE
### statement-not-allowed
ROLLBACK
### statement-not-allowed
ABORT
### statement-not-allowed
END
### statement-not-allowed
SAVEPOINT a
### statement-not-allowed
RELEASE SAVEPOINT a
### statement-not-allowed
ROLLBACK TO SAVEPOINT a
### statement-not-allowed
PREPARE TRANSACTION 'x'
### statement-not-allowed
COMMIT PREPARED 'x'
### statement-not-allowed
ROLLBACK PREPARED 'x'
### statement-not-allowed
COMMIT AND CHAIN
### statement-not-allowed
SET LOCAL transaction_read_only = off
### statement-not-allowed
SET SESSION AUTHORIZATION postgres
### statement-not-allowed
SET ROLE postgres
### statement-not-allowed
SET ROLE NONE
### statement-not-allowed
RESET ROLE
### statement-not-allowed
RESET ALL
### statement-not-allowed
SET search_path = evil
### statement-not-allowed
SET CONSTRAINTS ALL IMMEDIATE
### statement-not-allowed
SET TIME ZONE 'UTC'
### statement-not-allowed
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE
### statement-not-allowed
ALTER SYSTEM SET fsync = off
### statement-not-allowed
PREPARE x AS DELETE FROM users
### statement-not-allowed
EXECUTE x(1)
### statement-not-allowed
DEALLOCATE ALL
### statement-not-allowed
DECLARE c CURSOR WITH HOLD FOR SELECT * FROM users
### statement-not-allowed
FETCH ALL FROM c
### statement-not-allowed
MOVE NEXT FROM c
### statement-not-allowed
CLOSE c
### statement-not-allowed
LISTEN glasshouse
### statement-not-allowed
UNLISTEN *
### statement-not-allowed
NOTIFY x, 'payload'
### statement-not-allowed
DO LANGUAGE plpgsql $$ BEGIN DELETE FROM users; END $$
### statement-not-allowed
CALL p(1)
### statement-not-allowed
LOCK TABLE users IN ACCESS EXCLUSIVE MODE
### statement-not-allowed
DISCARD TEMP
### statement-not-allowed
CHECKPOINT
### statement-not-allowed
EXPLAIN (ANALYZE true) SELECT 1
### statement-not-allowed
EXPLAIN ANALYZE VERBOSE SELECT 1
### statement-not-allowed
EXPLAIN (ANALYZE false) SELECT 1
### statement-not-allowed
EXPLAIN (WAL) SELECT 1
### statement-not-allowed
EXPLAIN (ANALYZE, BUFFERS) DELETE FROM users
### multiple-statements
SELECT 1;; SELECT 2
### multiple-statements
SELECT 1; COMMIT
### multiple-statements
SELECT 1; SET ROLE postgres
### multiple-statements
; SELECT 1; DELETE FROM users
### multiple-statements
SELECT 1; -- x
SELECT 2
### multiple-statements
BEGIN; DELETE FROM users; COMMIT
### setting-not-allowed
SHOW ALL
### setting-not-allowed
SHOW config_file
### setting-not-allowed
SHOW hba_file
### setting-not-allowed
SELECT current_setting('config_file')
### setting-not-allowed
SELECT current_setting('ssl_key_file', true)
### setting-not-allowed
SELECT current_setting('work' || '_mem')
### setting-not-allowed
SELECT current_setting(name) FROM users
### setting-not-allowed
SELECT pg_catalog.current_setting('data_directory')
### setting-not-allowed
SELECT current_setting((SELECT 'data_directory'))
### setting-not-allowed
SELECT 1 WHERE current_setting('myapp.secret') = 'x'
