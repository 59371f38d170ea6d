-- Each case is one line: the expected outcome, a colon, the statement.
ok: SELECT 1
ok: SELECT count(*) FROM users WHERE created_at > now() - interval '7 days'
ok: SELECT u.name, count(*) AS n FROM users u JOIN user_activities a ON a.user_id = u.id GROUP BY u.name ORDER BY n DESC LIMIT 10
ok: WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT sum(n) FROM t
ok: SELECT date_trunc('week', timestamp) AS week, action, count(*) FROM user_activities GROUP BY GROUPING SETS ((1, 2), (1), ())
ok: SELECT id, total, rank() OVER (PARTITION BY customer_id ORDER BY total DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders
ok: SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total), corr(total, id), regr_slope(total, id) FROM orders
ok: SELECT d::date FROM generate_series(now() - interval '30 days', now(), interval '1 day') AS d
ok: SELECT details->>'page', details #>> '{a,b}', details ? 'page', details @> '{"device": "phone"}' FROM user_activities
ok: SELECT tags[1], tags[1:2], array_length(tags, 1) FROM users WHERE 'beta' = ANY(tags)
ok: SELECT ts_rank(to_tsvector('english', content), plainto_tsquery('invoice')) FROM documents WHERE to_tsvector('english', content) @@ to_tsquery('invoice')
ok: SELECT created_at AT TIME ZONE 'Europe/Berlin', extract(epoch FROM created_at) FROM users
ok: TABLE users
ok: VALUES (1, 'a'), (2, 'b')
ok: EXPLAIN SELECT * FROM users
ok: EXPLAIN (FORMAT json) SELECT * FROM users
ok: SELECT c.name, o.total FROM customers c CROSS JOIN LATERAL (SELECT total FROM orders WHERE customer_id = c.id ORDER BY total DESC LIMIT 1) o
ok: SELECT * FROM orders TABLESAMPLE BERNOULLI (10)
ok: SELECT CASE WHEN total > 100 THEN 'big' ELSE 'small' END, coalesce(status, '-'), greatest(1, 2), nullif(1, 2) FROM orders
ok: SELECT string_agg(name, ', ' ORDER BY name) FILTER (WHERE active) FROM users
ok: SELECT jsonb_build_object('a', 1), to_jsonb(u), row_to_json(u) FROM users u
ok: SELECT * FROM jsonb_to_recordset('[{"a": 1}]') AS x(a int)
ok: SELECT 1 UNION SELECT 2 EXCEPT SELECT 3
ok: SELECT EXISTS (SELECT 1 FROM users), ARRAY(SELECT id FROM users), ARRAY[1, 2]
ok: SELECT name FROM users WHERE name ILIKE 'a%' AND name ~ '^[A-Z]' AND name SIMILAR TO '%a'
ok: SELECT $$DROP TABLE users$$, 'DELETE FROM users', "name" FROM users -- UPDATE users
ok: SELECT width_bucket(total, 0, 1000, 10), round(total, 1), total::int, CAST(total AS text) FROM orders
ok: SELECT * FROM information_schema.tables
ok: SELECT current_user, current_date, localtimestamp, version()
ok: SELECT (jsonb_each(metadata)).key FROM documents
ok: SELECT substring(title FROM 1 FOR 3), trim(both ' ' FROM title), position('a' IN title), overlay(title placing 'x' from 1) FROM documents
read-only: INSERT INTO users VALUES (1)
read-only: UPDATE documents SET processed = true
read-only: DELETE FROM users
read-only: MERGE INTO users u USING users s ON u.id = s.id WHEN MATCHED THEN DELETE
read-only: TRUNCATE users
read-only: DROP TABLE users
read-only: CREATE TABLE x (a int)
read-only: CREATE TEMP TABLE x AS SELECT 1
read-only: SELECT * INTO x FROM users
read-only: WITH d AS (DELETE FROM users RETURNING *) SELECT * FROM d
read-only: SELECT * FROM (WITH d AS (UPDATE users SET name = '' RETURNING *) SELECT * FROM d) s
read-only: SELECT * FROM users FOR UPDATE
read-only: SELECT * FROM users FOR KEY SHARE
read-only: COPY users TO '/tmp/x'
read-only: COPY users TO PROGRAM 'id'
read-only: GRANT ALL ON users TO public
read-only: ALTER TABLE users ADD x int
read-only: CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'
read-only: VACUUM
read-only: REFRESH MATERIALIZED VIEW x
read-only: EXPLAIN DELETE FROM users
read-only: CREATE EXTENSION dblink
read-only: COMMENT ON TABLE users IS 'x'
multiple-statements: SELECT 1; SELECT 2
multiple-statements: SELECT 1; DROP TABLE users
multiple-statements: COMMIT; DROP TABLE users
statement-not-allowed: BEGIN
statement-not-allowed: COMMIT
statement-not-allowed: SET statement_timeout = 0
statement-not-allowed: SET TRANSACTION READ WRITE
statement-not-allowed: SHOW data_directory
statement-not-allowed: PREPARE x AS SELECT 1
statement-not-allowed: EXECUTE x
statement-not-allowed: DECLARE c CURSOR FOR SELECT 1
statement-not-allowed: LISTEN x
statement-not-allowed: NOTIFY x
statement-not-allowed: DO $$ BEGIN END $$
statement-not-allowed: CALL p()
statement-not-allowed: LOCK users
statement-not-allowed: DISCARD ALL
statement-not-allowed: LOAD 'x'
statement-not-allowed: EXPLAIN ANALYZE SELECT 1
statement-not-allowed: EXPLAIN (ANALYZE) SELECT 1
function-not-allowed: SELECT pg_sleep(100)
function-not-allowed: SELECT pg_catalog.pg_sleep(100)
function-not-allowed: SELECT "pg_sleep"(1)
function-not-allowed: SELECT pg_read_file('/etc/passwd')
function-not-allowed: SELECT pg_ls_dir('/')
function-not-allowed: SELECT * FROM pg_read_binary_file('/etc/passwd')
function-not-allowed: SELECT lo_import('/etc/passwd')
function-not-allowed: SELECT lo_creat(0)
function-not-allowed: SELECT set_config('transaction_read_only', 'off', false)
function-not-allowed: SELECT current_setting('data_directory')
function-not-allowed: SELECT nextval('s')
function-not-allowed: SELECT setval('s', 1)
function-not-allowed: SELECT pg_terminate_backend(1)
function-not-allowed: SELECT pg_cancel_backend(1)
function-not-allowed: SELECT pg_advisory_lock(1)
function-not-allowed: SELECT pg_try_advisory_xact_lock(1)
function-not-allowed: SELECT pg_notify('a', 'b')
function-not-allowed: SELECT query_to_xml('DELETE FROM users', true, true, '')
function-not-allowed: SELECT table_to_xml('users', true, true, '')
function-not-allowed: SELECT database_to_xml(true, true, '')
function-not-allowed: SELECT ts_stat('SELECT pg_sleep(1)')
function-not-allowed: SELECT dblink('x', 'y')
function-not-allowed: SELECT public.anything()
function-not-allowed: SELECT txid_current()
function-not-allowed: SELECT pg_logical_emit_message(true, 'a', 'b')
function-not-allowed: SELECT pg_reload_conf()
function-not-allowed: SELECT pg_switch_wal()
function-not-allowed: SELECT pg_stat_reset()
function-not-allowed: SELECT pg_export_snapshot()
function-not-allowed: SELECT setseed(0.1)
function-not-allowed: SELECT (1).pg_sleep
function-not-allowed: SELECT name FROM users ORDER BY pg_sleep(1)
function-not-allowed: SELECT 1 FROM users WHERE EXISTS (SELECT pg_sleep(1))
function-not-allowed: SELECT count(*) FILTER (WHERE pg_sleep(1) IS NULL) FROM users
function-not-allowed: SELECT sum(1) OVER (ORDER BY pg_sleep(1)) FROM users
function-not-allowed: SELECT 1 LIMIT (SELECT pg_sleep(1)::text::int)
function-not-allowed: VALUES (pg_sleep(1))
function-not-allowed: SELECT * FROM users TABLESAMPLE mine (1)
function-not-allowed: SELECT 1 OPERATOR(public.+) 2
type-not-allowed: SELECT 'x'::public.evil
type-not-allowed: SELECT 'x'::evil
permission: SELECT * FROM pg_stat_activity
permission: SELECT query FROM pg_catalog.pg_stat_activity
permission: SELECT * FROM pg_authid
syntax-error: SELEC 1
syntax-error: SELECT 'unfinished
syntax-error: SELECT FROM WHERE
