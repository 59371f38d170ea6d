-- A case is a line "### outcome" and the statement below it, up to the next.
### function-not-allowed
SELECT pg_sleep(100)
### function-not-allowed
SELECT pg_catalog.pg_sleep(100)
### function-not-allowed
SELECT "pg_sleep"(1)
### function-not-allowed
SELECT pg_read_file('/etc/passwd')
### function-not-allowed
SELECT pg_ls_dir('/')
### function-not-allowed
SELECT * FROM pg_read_binary_file('/etc/passwd')
### function-not-allowed
SELECT lo_import('/etc/passwd')
### function-not-allowed
SELECT lo_creat(0)
### function-not-allowed
SELECT set_config('transaction_read_only', 'off', false)
### setting-not-allowed
SELECT current_setting('data_directory')
### function-not-allowed
SELECT nextval('s')
### function-not-allowed
SELECT setval('s', 1)
### function-not-allowed
SELECT pg_terminate_backend(1)
### function-not-allowed
SELECT pg_cancel_backend(1)
### function-not-allowed
SELECT pg_advisory_lock(1)
### function-not-allowed
SELECT pg_try_advisory_xact_lock(1)
### function-not-allowed
SELECT pg_notify('a', 'b')
### function-not-allowed
SELECT query_to_xml('DELETE FROM users', true, true, '')
### function-not-allowed
SELECT table_to_xml('users', true, true, '')
### function-not-allowed
SELECT database_to_xml(true, true, '')
### function-not-allowed
SELECT ts_stat('SELECT pg_sleep(1)')
### function-not-allowed
SELECT dblink('x', 'y')
### function-not-allowed
SELECT public.anything()
### function-not-allowed
SELECT txid_current()
### function-not-allowed
SELECT pg_logical_emit_message(true, 'a', 'b')
### function-not-allowed
SELECT pg_reload_conf()
### function-not-allowed
SELECT pg_switch_wal()
### function-not-allowed
SELECT pg_stat_reset()
### function-not-allowed
SELECT pg_export_snapshot()
### function-not-allowed
SELECT setseed(0.1)
### function-not-allowed
SELECT (1).pg_sleep
### function-not-allowed
SELECT name FROM users ORDER BY pg_sleep(1)
### function-not-allowed
SELECT 1 FROM users WHERE EXISTS (SELECT pg_sleep(1))
### function-not-allowed
SELECT count(*) FILTER (WHERE pg_sleep(1) IS NULL) FROM users
### function-not-allowed
SELECT sum(1) OVER (ORDER BY pg_sleep(1)) FROM users
### function-not-allowed
SELECT 1 LIMIT (SELECT pg_sleep(1)::text::int)
### function-not-allowed
VALUES (pg_sleep(1))
### function-not-allowed
SELECT * FROM users TABLESAMPLE mine (1)
### function-not-allowed
SELECT 1 OPERATOR(public.+) 2
### type-not-allowed
SELECT 'x'::public.evil
### type-not-allowed
SELECT 'x'::evil
### permission
SELECT * FROM pg_stat_activity
### permission
SELECT datname, xact_commit FROM pg_stat_database
### permission
SELECT query FROM pg_catalog.pg_stat_activity
### permission
SELECT * FROM pg_authid
### function-not-allowed
SELECT pg_sleep_for('1 second'), 1
### function-not-allowed
SELECT pg_sleep_until('tomorrow')
### function-not-allowed
SELECT pg_read_file('pg_hba.conf', 0, 10)
### function-not-allowed
SELECT pg_stat_file('/etc/passwd')
### function-not-allowed
SELECT pg_ls_logdir()
### function-not-allowed
SELECT pg_ls_waldir()
### function-not-allowed
SELECT pg_ls_tmpdir()
### function-not-allowed
SELECT pg_current_logfile()
### function-not-allowed
SELECT lo_export(1, '/tmp/x')
### function-not-allowed
SELECT lo_from_bytea(0, 'x')
### function-not-allowed
SELECT lo_create(0)
### function-not-allowed
SELECT lo_open(1, 131072)
### function-not-allowed
SELECT lo_put(1, 0, 'x')
### function-not-allowed
SELECT lo_unlink(1)
### function-not-allowed
SELECT lo_get(1)
### function-not-allowed
SELECT loread(0, 1), lowrite(0, 'x')
### function-not-allowed
SELECT currval('s')
### function-not-allowed
SELECT lastval()
### function-not-allowed
SELECT set_config('role', 'postgres', true)
### function-not-allowed
SELECT pg_advisory_xact_lock(1)
### function-not-allowed
SELECT pg_advisory_lock_shared(1, 2)
### function-not-allowed
SELECT pg_try_advisory_lock(1)
### function-not-allowed
SELECT pg_advisory_unlock_all()
### function-not-allowed
SELECT pg_backup_start('x')
### function-not-allowed
SELECT pg_start_backup('x')
### function-not-allowed
SELECT pg_create_restore_point('x')
### function-not-allowed
SELECT pg_promote()
### function-not-allowed
SELECT pg_rotate_logfile()
### function-not-allowed
SELECT pg_wal_replay_pause()
### function-not-allowed
SELECT pg_log_backend_memory_contexts(1)
### function-not-allowed
SELECT pg_create_logical_replication_slot('x', 'test_decoding')
### function-not-allowed
SELECT pg_create_physical_replication_slot('x')
### function-not-allowed
SELECT pg_drop_replication_slot('x')
### function-not-allowed
SELECT pg_logical_slot_get_changes('x', NULL, NULL)
### function-not-allowed
SELECT pg_logical_slot_peek_changes('x', NULL, NULL)
### function-not-allowed
SELECT pg_replication_origin_create('x')
### function-not-allowed
SELECT pg_stat_reset_shared('bgwriter')
### function-not-allowed
SELECT pg_stat_clear_snapshot()
### function-not-allowed
SELECT pg_stat_get_activity(NULL)
### function-not-allowed
SELECT pg_stat_force_next_flush()
### function-not-allowed
SELECT pg_current_xact_id()
### function-not-allowed
SELECT txid_current_snapshot()
### function-not-allowed
SELECT pg_current_wal_lsn()
### function-not-allowed
SELECT pg_blocking_pids(1)
### function-not-allowed
SELECT pg_lock_status()
### function-not-allowed
SELECT pg_prepared_xact()
### function-not-allowed
SELECT pg_cursor()
### function-not-allowed
SELECT pg_show_all_settings()
### function-not-allowed
SELECT pg_hba_file_rules()
### function-not-allowed
SELECT pg_config()
### function-not-allowed
SELECT pg_get_shmem_allocations()
### function-not-allowed
SELECT pg_import_system_collations('public'::regnamespace)
### function-not-allowed
SELECT pg_extension_config_dump('users', '')
### function-not-allowed
SELECT pg_nextoid('pg_class', 'oid', 'pg_class_oid_index')
### function-not-allowed
SELECT pg_stop_making_pinned_objects()
### function-not-allowed
SELECT binary_upgrade_set_next_pg_type_oid(1)
### function-not-allowed
SELECT pg_collation_actual_version(1)
### function-not-allowed
SELECT brin_summarize_new_values('users')
### function-not-allowed
SELECT gin_clean_pending_list('users')
### function-not-allowed
SELECT pg_relation_filepath('users')
### function-not-allowed
SELECT pg_listening_channels()
### function-not-allowed
SELECT pg_notification_queue_usage()
### function-not-allowed
SELECT query_to_xml('SELECT pg_sleep(1)', true, false, '')
### function-not-allowed
SELECT query_to_xml_and_xmlschema('SELECT 1', true, false, '')
### function-not-allowed
SELECT query_to_xmlschema('SELECT 1', true, false, '')
### function-not-allowed
SELECT cursor_to_xml('c', 1, true, false, '')
### function-not-allowed
SELECT table_to_xml_and_xmlschema('users', true, true, '')
### function-not-allowed
SELECT schema_to_xml('public', true, true, '')
### function-not-allowed
SELECT database_to_xml_and_xmlschema(true, true, '')
### function-not-allowed
SELECT * FROM ts_stat('SELECT pg_sleep(1)::text::tsvector')
### function-not-allowed
SELECT * FROM dblink('dbname=x', 'DELETE FROM users') AS t(a int)
### function-not-allowed
SELECT dblink_exec('x', 'y')
### function-not-allowed
SELECT * FROM crosstab('SELECT 1') AS t(a int)
### function-not-allowed
SELECT plpgsql_call_handler()
### function-not-allowed
SELECT fmgr_sql_validator(1)
### function-not-allowed
SELECT has_nothing_like_this(1)
### function-not-allowed
SELECT pg_catalog.set_config('a.b', 'c', false)
### function-not-allowed
SELECT "pg_catalog"."pg_sleep"(1)
### function-not-allowed
SELECT PG_SLEEP(1)
### function-not-allowed
SELECT U&"pg\005fsleep"(1)
### function-not-allowed
SELECT other.schema.f(1)
### function-not-allowed
SELECT * FROM generate_series(1, (SELECT 1 FROM pg_sleep(1)))
### function-not-allowed
SELECT 1 FROM users u JOIN LATERAL pg_sleep(u.id) s ON true
### function-not-allowed
SELECT * FROM ROWS FROM (generate_series(1, 2), pg_sleep(1)) AS t
### function-not-allowed
SELECT CASE WHEN pg_sleep(1) IS NULL THEN 1 END
### function-not-allowed
SELECT coalesce(pg_sleep(1)::text, '')
### function-not-allowed
SELECT ARRAY[pg_sleep(1)]
### function-not-allowed
SELECT ROW(pg_sleep(1))
### function-not-allowed
SELECT (ARRAY[1])[pg_try_advisory_lock(1)::int]
### function-not-allowed
SELECT 1 GROUP BY pg_sleep(1)
### function-not-allowed
SELECT 1 HAVING pg_sleep(1) IS NULL
### function-not-allowed
SELECT count(*) OVER (PARTITION BY pg_sleep(1)) FROM users
### function-not-allowed
SELECT 1 FROM users WINDOW w AS (ORDER BY pg_sleep(1))
### function-not-allowed
SELECT sum(1) OVER (ROWS BETWEEN nextval('s') PRECEDING AND CURRENT ROW)
### function-not-allowed
SELECT 1 OFFSET nextval('s')
### function-not-allowed
SELECT DISTINCT ON (pg_sleep(1)) 1
### function-not-allowed
SELECT string_agg(name, ',' ORDER BY pg_sleep(1)) FROM users
### function-not-allowed
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY nextval('s')) FROM users
### function-not-allowed
SELECT xmlelement(name a, pg_sleep(1))
### function-not-allowed
SELECT xmlelement(name a, xmlattributes(pg_sleep(1) AS b))
### function-not-allowed
SELECT * FROM xmltable('/a' PASSING query_to_xml('SELECT 1', true, true, '') COLUMNS b int)
### function-not-allowed
SELECT json_build_object('a', pg_sleep(1))
### function-not-allowed
SELECT greatest(1, nextval('s'))
### function-not-allowed
SELECT 1 WHERE 1 IN (SELECT nextval('s'))
### function-not-allowed
SELECT 1 = ANY (ARRAY[nextval('s')])
### function-not-allowed
SELECT 1 BETWEEN nextval('s') AND 2
### function-not-allowed
SELECT nextval('s') IS NULL
### function-not-allowed
SELECT pg_sleep(1) IS DISTINCT FROM NULL
### function-not-allowed
SELECT name COLLATE "C" FROM users WHERE lo_creat(1) > 0
### function-not-allowed
SELECT make_interval(secs => nextval('s'))
### function-not-allowed
SELECT concat(VARIADIC ARRAY[pg_read_file('x')])
### function-not-allowed
WITH t AS (SELECT pg_sleep(1)) SELECT 1
### function-not-allowed
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + nextval('s')::int FROM t) SELECT * FROM t
### function-not-allowed
VALUES (1), (nextval('s'))
### function-not-allowed
EXPLAIN SELECT pg_sleep(1)
### function-not-allowed
SELECT * FROM users TABLESAMPLE BERNOULLI (nextval('s'))
### function-not-allowed
SELECT * FROM users TABLESAMPLE SYSTEM (1) REPEATABLE (nextval('s'))
### function-not-allowed
SELECT (1).lo_creat
### function-not-allowed
SELECT ((SELECT 'x')).pg_read_file
### function-not-allowed
SELECT 1 ORDER BY 1 USING OPERATOR(public.<)
### function-not-allowed
SELECT 1 = OPERATOR(evil.=) 1
### type-not-allowed
SELECT 'x'::aclitem
### type-not-allowed
SELECT CAST('x' AS refcursor)
### type-not-allowed
SELECT 'x'::cstring
### type-not-allowed
SELECT NULL::internal
### type-not-allowed
SELECT NULL::trigger
### type-not-allowed
SELECT 'x'::pg_node_tree
### type-not-allowed
SELECT * FROM json_to_record('{}') AS x(a evil)
### type-not-allowed
SELECT ARRAY[]::evil[]
### type-not-allowed
SELECT evil 'x'
### type-not-allowed
SELECT CAST(1 AS other.thing)
### permission
SELECT * FROM pg_locks
### permission
SELECT * FROM pg_settings
### permission
SELECT * FROM pg_shadow
### permission
SELECT * FROM pg_user
### permission
SELECT * FROM pg_roles
### permission
SELECT * FROM pg_auth_members
### permission
SELECT * FROM pg_stats
### permission
SELECT * FROM pg_statistic
### permission
SELECT * FROM pg_largeobject
### permission
SELECT * FROM pg_file_settings
### permission
SELECT * FROM pg_hba_file_rules
### permission
SELECT * FROM pg_prepared_statements
### permission
SELECT * FROM pg_cursors
### permission
SELECT * FROM pg_replication_slots
### permission
SELECT * FROM pg_stat_replication
### permission
SELECT * FROM pg_stat_ssl
### permission
SELECT * FROM pg_user_mappings
### permission
SELECT * FROM pg_foreign_server
### permission
SELECT * FROM pg_subscription
### permission
SELECT * FROM pg_config
### permission
SELECT * FROM pg_shmem_allocations
### permission
SELECT * FROM pg_db_role_setting
### permission
TABLE pg_authid
### permission
SELECT (SELECT rolpassword FROM pg_catalog.pg_authid LIMIT 1)
### permission
SELECT * FROM pg_toast.pg_toast_1255
### permission
SELECT * FROM pg_temp.x
### permission
SELECT * FROM users, "pg_stat_activity"
