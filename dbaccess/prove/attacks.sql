-- Attacks that the reader must refuse. A case is a line "### name" and the statement below it.
-- {table} and {column} stand for a table of the database and its first column. No attack changes a
-- row, even if it succeeds, and each is rolled back. If a case has a line "-- only: expression", its
-- statement runs through the reader only; for the other layers, prove evaluates the expression, which
-- says whether the login has the privilege.
### INSERT
INSERT INTO {table} SELECT * FROM {table} WHERE false
### UPDATE
UPDATE {table} SET {column} = {column} WHERE false
### DELETE
DELETE FROM {table} WHERE false
### MERGE
MERGE INTO {table} t USING (SELECT 1) s ON false WHEN MATCHED THEN DO NOTHING
### DELETE in a CTE
WITH gone AS (DELETE FROM {table} WHERE false RETURNING 1) SELECT * FROM gone
### INSERT in a nested CTE
SELECT * FROM (WITH a AS (INSERT INTO {table} SELECT * FROM {table} WHERE false RETURNING 1) SELECT 1) s
### TRUNCATE
-- only: has_table_privilege('{table}', 'TRUNCATE')
TRUNCATE {table}
### DROP TABLE
-- only: (SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = '{table}'::regclass)
DROP TABLE {table}
### ALTER TABLE
-- only: (SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = '{table}'::regclass)
ALTER TABLE {table} ADD COLUMN glasshouse_prove int
### CREATE TABLE
CREATE TABLE glasshouse_prove (a int)
### CREATE TEMP TABLE
CREATE TEMP TABLE glasshouse_prove (a int)
### CREATE TABLE AS
CREATE TABLE glasshouse_prove AS SELECT 1 AS a
### SELECT INTO
SELECT 1 AS a INTO glasshouse_prove
### SELECT INTO TEMP
SELECT 1 AS a INTO TEMP glasshouse_prove
### CREATE VIEW
CREATE VIEW glasshouse_prove AS SELECT 1 AS a
### CREATE FUNCTION
CREATE FUNCTION glasshouse_prove() RETURNS int LANGUAGE sql AS 'SELECT 1'
### CREATE FUNCTION in pg_temp
CREATE FUNCTION pg_temp.glasshouse_prove() RETURNS int LANGUAGE sql AS 'SELECT 1'
### CREATE SCHEMA
CREATE SCHEMA glasshouse_prove
### CREATE EXTENSION
CREATE EXTENSION file_fdw
### CREATE ROLE
CREATE ROLE glasshouse_prove
### ALTER ROLE
-- only: (SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user)
ALTER ROLE CURRENT_USER SUPERUSER
### ALTER SYSTEM
-- only: (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
ALTER SYSTEM SET work_mem = '4MB'
### GRANT
GRANT SELECT ON {table} TO PUBLIC
### COMMENT
COMMENT ON TABLE {table} IS NULL
### CREATE INDEX
-- only: (SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = '{table}'::regclass)
CREATE INDEX ON {table} ({column})
### ANALYZE
-- only: (SELECT pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = '{table}'::regclass)
ANALYZE {table}
### REFRESH MATERIALIZED VIEW
REFRESH MATERIALIZED VIEW {table}
### FOR UPDATE
SELECT * FROM {table} WHERE false FOR UPDATE
### FOR SHARE in a subquery
SELECT * FROM (SELECT 1 FROM {table} WHERE false FOR SHARE) s
### LOCK TABLE
LOCK TABLE {table} IN ACCESS SHARE MODE
### COPY TO a program
-- only: pg_has_role('pg_execute_server_program', 'MEMBER')
COPY (SELECT 1) TO PROGRAM 'true'
### COPY TO a file
-- only: pg_has_role('pg_write_server_files', 'MEMBER')
COPY (SELECT 1) TO '/dev/null'
### COPY FROM a program
-- only: pg_has_role('pg_execute_server_program', 'MEMBER')
COPY {table} FROM PROGRAM 'true'
### COPY TO STDOUT
-- only: has_table_privilege('{table}', 'SELECT')
COPY {table} TO STDOUT
### DO
DO $$ BEGIN PERFORM 1; END $$
### CALL
CALL glasshouse_prove()
### SET
SET work_mem = '4MB'
### SET ROLE
SET ROLE NONE
### RESET ALL
RESET ALL
### SET TRANSACTION READ WRITE
SET TRANSACTION READ WRITE
### set_config
SELECT set_config('work_mem', '4MB', true)
### set_config of read only
SELECT set_config('transaction_read_only', 'off', true)
### set_config in a CASE
SELECT CASE WHEN true THEN set_config('work_mem', '4MB', true) END
### COMMIT
COMMIT
### two statements
SELECT 1; DROP TABLE glasshouse_prove
### PREPARE
PREPARE glasshouse_prove AS SELECT 1
### DECLARE CURSOR WITH HOLD
DECLARE glasshouse_prove CURSOR WITH HOLD FOR SELECT 1
### LISTEN
LISTEN glasshouse_prove
### NOTIFY
NOTIFY glasshouse_prove
### pg_notify
SELECT pg_notify('glasshouse_prove', '')
### advisory lock
SELECT pg_advisory_lock(7310993)
### advisory lock in ORDER BY
SELECT 1 ORDER BY pg_try_advisory_lock(7310993)
### large object
SELECT lo_create(0)
### large object from bytes
SELECT lo_from_bytea(0, '\x00')
### large object export
-- only: has_function_privilege('lo_export(oid,text)', 'EXECUTE')
SELECT lo_export(0, '/dev/null')
### read a file
SELECT pg_read_file('/etc/hostname')
### list a folder
SELECT pg_ls_dir('/')
### stat a file
SELECT pg_stat_file('/etc/hostname')
### sleep
SELECT pg_sleep(0)
### sleep in WHERE
SELECT 1 FROM {table} WHERE pg_sleep(0) IS NOT NULL LIMIT 0
### sleep as an argument
SELECT coalesce(pg_sleep(0)::text, '')
### sleep in a lateral join
SELECT 1 FROM {table} t, LATERAL (SELECT pg_sleep(0)) s LIMIT 0
### cancel another
SELECT pg_cancel_backend(0)
### end another
SELECT pg_terminate_backend(0)
### reload the configuration
-- only: has_function_privilege('pg_reload_conf()', 'EXECUTE')
SELECT pg_reload_conf()
### rotate the log
-- only: has_function_privilege('pg_rotate_logfile()', 'EXECUTE')
SELECT pg_rotate_logfile()
### switch the WAL
-- only: has_function_privilege('pg_switch_wal()', 'EXECUTE')
SELECT pg_switch_wal()
### reset statistics
-- only: has_function_privilege('pg_stat_reset()', 'EXECUTE')
SELECT pg_stat_reset()
### log memory contexts
-- only: has_function_privilege('pg_log_backend_memory_contexts(int)', 'EXECUTE')
SELECT pg_log_backend_memory_contexts(pg_backend_pid())
### write to the WAL
SELECT pg_logical_emit_message(true, 'glasshouse_prove', '')
### replication slot
-- only: (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user)
SELECT pg_create_physical_replication_slot('glasshouse_prove')
### export a snapshot
SELECT pg_export_snapshot()
### take a transaction id
SELECT txid_current()
### SQL in a string
SELECT query_to_xml('SELECT 1', true, true, '')
### a table by its name
SELECT table_to_xml('{table}', true, true, '')
### schema to XML
SELECT database_to_xml(true, true, '')
### SQL in a text search function
SELECT * FROM ts_stat('SELECT ''''::tsvector')
### SQL in a query rewrite
SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery')
### dblink
SELECT * FROM dblink('dbname=postgres', 'SELECT 1') AS t(a int)
### attribute notation
SELECT (0::double precision).pg_sleep
### attribute notation: sleep
SELECT s.pg_sleep FROM unnest(ARRAY[0::double precision]) s
### attribute notation: SQL in a string
SELECT s.ts_stat FROM unnest(ARRAY['SELECT ''a''::tsvector']) s
### attribute notation: what others run
SELECT (s.pg_stat_get_activity).query FROM unnest(ARRAY[NULL::int]) s
### attribute notation: cancel another
SELECT s.pg_cancel_backend FROM generate_series(0, 0) s
### attribute notation: lock
SELECT s.pg_advisory_lock FROM generate_series(7310993, 7310993::bigint) s
### attribute notation: large object
SELECT s.lo_creat FROM generate_series(0, 0) s
### attribute notation of a function without an alias
SELECT abs.pg_sleep FROM abs(0::double precision)
### EXPLAIN ANALYZE
EXPLAIN ANALYZE SELECT pg_sleep(0)
### EXPLAIN of a write
EXPLAIN DELETE FROM {table} WHERE false
### what others run
SELECT query FROM pg_stat_activity
### password hashes
SELECT rolpassword FROM pg_authid
### server settings
SELECT current_setting('data_directory')
### SHOW of a file
SHOW hba_file
### the settings' table
SELECT * FROM pg_settings LIMIT 1
### statistics of values
SELECT most_common_vals FROM pg_stats LIMIT 1
### a deep chain
SELECT 1{chain}
