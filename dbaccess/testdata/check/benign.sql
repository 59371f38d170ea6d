-- A case is a line "### outcome" and the statement below it, up to the next.
### ok
SELECT 1
### ok
SELECT count(*) FROM users WHERE created_at > now() - interval '7 days'
### ok
SELECT u.name, count(*) AS n FROM users u JOIN user_activities a ON a.user_id = u.id GROUP BY u.name ORDER BY n DESC LIMIT 10
### ok
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT sum(n) FROM t
### ok
SELECT date_trunc('week', timestamp) AS week, action, count(*) FROM user_activities GROUP BY GROUPING SETS ((1, 2), (1), ())
### ok
SELECT id, total, rank() OVER (PARTITION BY customer_id ORDER BY total DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM orders
### ok
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total), corr(total, id), regr_slope(total, id) FROM orders
### ok
SELECT d::date FROM generate_series(now() - interval '30 days', now(), interval '1 day') AS d
### ok
SELECT details->>'page', details #>> '{a,b}', details ? 'page', details @> '{"device": "phone"}' FROM user_activities
### ok
SELECT tags[1], tags[1:2], array_length(tags, 1) FROM users WHERE 'beta' = ANY(tags)
### ok
SELECT ts_rank(to_tsvector('english', content), plainto_tsquery('invoice')) FROM documents WHERE to_tsvector('english', content) @@ to_tsquery('invoice')
### ok
SELECT created_at AT TIME ZONE 'Europe/Berlin', extract(epoch FROM created_at) FROM users
### ok
TABLE users
### ok
VALUES (1, 'a'), (2, 'b')
### ok
EXPLAIN SELECT * FROM users
### ok
EXPLAIN (FORMAT json) SELECT * FROM users
### ok
SELECT c.name, o.total FROM customers c CROSS JOIN LATERAL (SELECT total FROM orders WHERE customer_id = c.id ORDER BY total DESC LIMIT 1) o
### ok
SELECT * FROM orders TABLESAMPLE BERNOULLI (10)
### ok
SELECT CASE WHEN total > 100 THEN 'big' ELSE 'small' END, coalesce(status, '-'), greatest(1, 2), nullif(1, 2) FROM orders
### ok
SELECT string_agg(name, ', ' ORDER BY name) FILTER (WHERE active) FROM users
### ok
SELECT jsonb_build_object('a', 1), to_jsonb(u), row_to_json(u) FROM users u
### ok
SELECT * FROM jsonb_to_recordset('[{"a": 1}]') AS x(a int)
### ok
SELECT 1 UNION SELECT 2 EXCEPT SELECT 3
### ok
SELECT EXISTS (SELECT 1 FROM users), ARRAY(SELECT id FROM users), ARRAY[1, 2]
### ok
SELECT name FROM users WHERE name ILIKE 'a%' AND name ~ '^[A-Z]' AND name SIMILAR TO '%a'
### ok
SELECT $$DROP TABLE users$$, 'DELETE FROM users', "name" FROM users -- UPDATE users
### ok
SELECT width_bucket(total, 0, 1000, 10), round(total, 1), total::int, CAST(total AS text) FROM orders
### ok
SELECT * FROM information_schema.tables
### ok
SELECT current_user, current_date, localtimestamp, version()
### ok
SELECT (jsonb_each(metadata)).key FROM documents
### ok
SELECT substring(title FROM 1 FOR 3), trim(both ' ' FROM title), position('a' IN title), overlay(title placing 'x' from 1) FROM documents
### ok
SELECT id, name, row_number() OVER w, lag(name) OVER w, lead(name, 2, '-') OVER w, first_value(name) OVER w, ntile(4) OVER w FROM users WINDOW w AS (PARTITION BY country ORDER BY created_at)
### ok
SELECT customer_id, sum(total) OVER (PARTITION BY customer_id ORDER BY ordered_at RANGE BETWEEN interval '30 days' PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM orders LIMIT 50
### ok
SELECT total, avg(total) OVER (ORDER BY id GROUPS BETWEEN 2 PRECEDING AND 2 FOLLOWING) FROM orders LIMIT 10
### ok
SELECT country, plan, count(*), grouping(country, plan) FROM users GROUP BY CUBE (country, plan) ORDER BY 1 NULLS FIRST, 2
### ok
SELECT country, plan, count(*) FROM users GROUP BY ROLLUP (country, plan) HAVING count(*) > 3
### ok
SELECT mode() WITHIN GROUP (ORDER BY plan), percentile_disc(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY created_at) FROM users
### ok
SELECT rank(500) WITHIN GROUP (ORDER BY total), dense_rank(500) WITHIN GROUP (ORDER BY total), percent_rank(500) WITHIN GROUP (ORDER BY total), cume_dist(500) WITHIN GROUP (ORDER BY total) FROM orders
### ok
SELECT stddev(total), stddev_pop(total), variance(total), var_samp(total), covar_pop(total, id), regr_r2(total, id), regr_intercept(total, id), regr_count(total, id) FROM orders
### ok
SELECT bit_and(id), bit_or(id), bool_and(active), every(active), min(name), max(created_at) FROM users
### ok
WITH RECURSIVE tree AS (SELECT id, name, 1 AS depth, ARRAY[id] AS path FROM categories WHERE parent_id IS NULL UNION ALL SELECT c.id, c.name, t.depth + 1, t.path || c.id FROM categories c JOIN tree t ON c.parent_id = t.id) SELECT * FROM tree ORDER BY path
### ok
WITH RECURSIVE t(id, parent_id) AS (SELECT id, parent_id FROM categories UNION ALL SELECT c.id, c.parent_id FROM categories c JOIN t ON c.parent_id = t.id) SEARCH DEPTH FIRST BY id SET ordercol CYCLE id SET is_cycle USING path SELECT id FROM t
### ok
WITH a AS MATERIALIZED (SELECT id FROM users WHERE active), b AS NOT MATERIALIZED (SELECT * FROM a) SELECT count(*) FROM a JOIN b USING (id)
### ok
SELECT day::date, count(o.id) FROM generate_series(date_trunc('month', now()) - interval '3 months', now(), '1 day') AS day LEFT JOIN orders o ON o.ordered_at::date = day::date GROUP BY 1 ORDER BY 1
### ok
SELECT i, chr(65 + i) FROM generate_series(0, 25) AS s(i)
### ok
SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS g(v, n)
### ok
SELECT * FROM ROWS FROM (generate_series(1, 3), generate_series(10, 14)) AS t(a, b)
### ok
SELECT t.tag, count(*) FROM users CROSS JOIN LATERAL unnest(tags) AS t(tag) GROUP BY 1 ORDER BY 2 DESC
### ok
SELECT * FROM unnest(ARRAY[1, 2], ARRAY['a', 'b', 'c']) AS t(n, s)
### ok
SELECT preferences -> 'notifications' ->> 'email', preferences #> '{notifications,email}', preferences ? 'theme', preferences ?| ARRAY['theme', 'x'], preferences ?& ARRAY['theme'] FROM users
### ok
SELECT preferences || '{"a": 1}'::jsonb, preferences - 'theme', preferences #- '{notifications,email}', preferences @> '{"theme": "dark"}', '{"theme": "dark"}' <@ preferences FROM users LIMIT 5
### ok
SELECT preferences @? '$.page_size ? (@ > 20)', preferences @@ '$.page_size > 20' FROM users LIMIT 5
### ok
SELECT preferences['theme'], preferences['notifications']['email'] FROM users LIMIT 3
### ok
SELECT key, value FROM users, jsonb_each_text(preferences) WHERE id = 1
### ok
SELECT jsonb_path_query_array('[1,2,3]', '$[*] ? (@ > 1)'), jsonb_pretty(preferences), jsonb_typeof(preferences) FROM users LIMIT 1
### ok
SELECT jsonb_agg(jsonb_build_object('id', id, 'name', name) ORDER BY id) FROM users WHERE id < 5
### ok
SELECT json_object_agg(plan, n) FROM (SELECT plan, count(*) AS n FROM users GROUP BY plan) s
### ok
SELECT * FROM json_to_record('{"a": 1, "b": [1, 2]}') AS x(a int, b int[])
### ok
SELECT jsonb_set('{"a": {"b": 1}}', '{a,b}', '2'), jsonb_insert('[1]', '{0}', '0'), jsonb_strip_nulls('{"a": null}')
### ok
SELECT to_json(ARRAY[1, 2]), json_build_array(1, 'a', NULL), json_typeof('[]'), json_array_length('[1, 2]')
### ok
SELECT title, ts_headline('english', content, websearch_to_tsquery('english', '"restore backups" -invoice')) FROM documents WHERE to_tsvector('english', title || ' ' || content) @@ websearch_to_tsquery('english', 'restore') LIMIT 5
### ok
SELECT to_tsquery('a & b') && plainto_tsquery('c'), phraseto_tsquery('the quick fox'), 'a b'::tsvector @@ 'a'::tsquery, setweight('a:1'::tsvector, 'A')
### ok
SELECT title, similarity FROM (SELECT title, ts_rank_cd(to_tsvector(title), to_tsquery('guide')) AS similarity FROM documents) s ORDER BY similarity DESC LIMIT 3
### ok
SELECT now() AT TIME ZONE 'UTC', timezone('Asia/Tokyo', now()), extract(dow FROM now()), date_part('hour', now()), extract(isoyear FROM current_date), extract(epoch FROM interval '1 day')
### ok
SELECT date_trunc('hour', now(), 'Europe/Paris'), date_bin('15 minutes', now(), timestamptz '2001-01-01'), age(now(), now() - interval '1 year'), justify_interval('40 days')
### ok
SELECT make_date(2024, 2, 29), make_interval(days => 10, hours => 2), make_timestamptz(2024, 1, 1, 0, 0, 0, 'UTC'), to_timestamp(0), to_char(now(), 'YYYY-MM-DD HH24:MI'), to_date('2024-01-01', 'YYYY-MM-DD')
### ok
SELECT (date '2024-01-01', date '2024-02-01') OVERLAPS (date '2024-01-15', interval '1 month'), isfinite(now())
### ok
SELECT current_date, current_time, current_timestamp(3), localtime, now() - interval '1' day, interval '1-2' year to month
### ok
SELECT int4range(1, 10) @> 5, tstzrange(now(), now() + '1 h') && tstzrange(now(), NULL), lower(int4range(1, 5)), upper_inf(int8range(1, NULL)), range_merge(int4range(1, 2), int4range(5, 6)), isempty('empty'::numrange)
### ok
SELECT range_agg(int4range(id, id + 1)) FROM users WHERE id < 9
### ok
SELECT '{[1,3), [5,7)}'::int4multirange * '{[2,6)}'::int4multirange, unnest('{[1,2)}'::int4multirange)
### ok
SELECT ARRAY[1, 2] || 3, 1 = ANY (ARRAY[1, 2]), 3 <> ALL (ARRAY[1, 2]), ARRAY[1, 2] && ARRAY[2], ARRAY[1] <@ ARRAY[1, 2], cardinality(ARRAY[1]), array_position(ARRAY['a'], 'a'), array_remove(ARRAY[1, 2], 1), array_to_string(ARRAY[1, 2], ',')
### ok
SELECT array_agg(DISTINCT country ORDER BY country), string_agg(DISTINCT plan, ',') FROM users
### ok
SELECT (array_agg(name ORDER BY created_at DESC))[1], (array_agg(id))[1:3] FROM users
### ok
SELECT (ARRAY[[1, 2], [3, 4]])[2][1], array_dims(ARRAY[[1, 2]]), array_ndims(ARRAY[1]), generate_subscripts(ARRAY[5, 6], 1)
### ok
SELECT substring(email FROM '@(.*)$'), split_part(email, '@', 2), regexp_replace(name, '(\w+) (\w+)', '\2 \1'), regexp_matches(name, '[A-Z]', 'g'), regexp_split_to_array(name, ' ') FROM users LIMIT 3
### ok
SELECT initcap('a b'), lpad('1', 3, '0'), rpad('x', 3), btrim(' x '), ltrim('xa', 'x'), left('abc', 2), right('abc', 2), reverse('abc'), repeat('a', 3), strpos('abc', 'c'), translate('abc', 'a', 'x'), concat_ws('-', 'a', NULL, 'b'), format('%s %I %L', 1, 'a b', 'c'), md5('a'), length('é'), char_length('é'), octet_length('é'), ascii('a'), encode('a', 'base64'), decode('YQ==', 'base64'), quote_ident('A b'), starts_with('abc', 'a'), overlay('abc' PLACING 'x' FROM 2 FOR 1), trim(LEADING 'x' FROM 'xa'), normalize('a'), 'a' IS NORMALIZED
### ok
SELECT U&'d\0061t', E'a\nb', $q$it's$q$, B'101', X'1F', 1e3, .5, 1.
### ok
SELECT abs(-1), ceil(1.2), floor(1.2), round(1.25, 1), trunc(1.9), mod(7, 3), power(2, 10), sqrt(2), cbrt(8), exp(1), ln(2), log(100), log(2, 8), sign(-1), pi(), random() < 2, degrees(1), sin(1), atan2(1, 2), gcd(4, 6), lcm(4, 6), factorial(5), div(7, 2), width_bucket(5, ARRAY[1, 3, 9]), 2 ^ 3, 7 % 3, |/ 4, @ -1, 1 # 3, ~ 1, 1 << 2
### ok
SELECT CASE country WHEN 'Japan' THEN 1 WHEN 'Kenya' THEN 2 ELSE 0 END, CASE WHEN active THEN 'y' END FROM users
### ok
SELECT name FROM users WHERE (country, plan) IN (('Japan', 'free'), ('Kenya', 'team')) OR (id, name) > (1, 'a')
### ok
SELECT id FROM orders WHERE total BETWEEN 10 AND 20 OR total NOT BETWEEN SYMMETRIC 500 AND 1 OR status IN ('paid', 'open')
### ok
SELECT name FROM users WHERE name LIKE 'A%' ESCAPE '!' AND name NOT ILIKE '%z' AND name !~* 'q' AND email ~~ '%@%' AND name LIKE ANY (ARRAY['A%', 'B%'])
### ok
SELECT u.* FROM users u WHERE NOT EXISTS (SELECT FROM orders o WHERE o.customer_id = u.id) AND u.id IN (SELECT author_id FROM documents) LIMIT 5
### ok
SELECT name, (SELECT count(*) FROM orders o WHERE o.customer_id = c.id) AS n FROM customers c ORDER BY n DESC NULLS LAST FETCH FIRST 5 ROWS ONLY
### ok
SELECT * FROM orders ORDER BY total DESC FETCH FIRST 3 ROWS WITH TIES
### ok
SELECT DISTINCT ON (customer_id) customer_id, ordered_at, total FROM orders ORDER BY customer_id, ordered_at DESC
### ok
SELECT a.id FROM users a LEFT JOIN users b ON a.id = b.id + 1 RIGHT JOIN users c ON c.id = a.id FULL JOIN users d ON d.id = c.id LIMIT 2
### ok
SELECT * FROM orders NATURAL JOIN (SELECT 1 AS id) s
### ok
SELECT x.id, x.name FROM (users JOIN (SELECT 1 AS one) s ON true) AS x
### ok
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(n, s) WHERE n > 1
### ok
(SELECT 1 UNION ALL SELECT 2) INTERSECT SELECT 2 ORDER BY 1 LIMIT 1 OFFSET 0
### ok
SELECT u FROM users u LIMIT 1
### ok
SELECT (u).email, (u.preferences).* FROM (SELECT 1 AS a, u, ROW(1, 2) AS preferences FROM users u) u LIMIT 0
### ok
SELECT ROW(1, 'a', NULL), (ROW(1, 2)) IS DISTINCT FROM ROW(1, 3), (1, 2) = (1, 2)
### ok
SELECT count(*), count(DISTINCT user_id), count(*) FILTER (WHERE action = 'login'), sum(duration_ms)::numeric / nullif(count(*), 0) FROM user_activities
### ok
SELECT name COLLATE "C" FROM users ORDER BY name COLLATE "C" LIMIT 3
### ok
SELECT cast('1' AS int), '2024-01-01'::date, int '5', float8 '1.5', '1'::numeric(5, 2), 'x'::varchar(3), '{1,2}'::int[], bool 'yes', 'a'::char(2), '1 day'::interval, time '10:00', '10.0.0.1'::inet <<= '10.0.0.0/8', host('10.0.0.1'::inet), '08:00:2b:01:02:03'::macaddr
### ok
SELECT pg_typeof(1), pg_column_size('a'::text), 'users'::regclass, 'users'::regclass::oid::int8 > 0, pg_size_pretty(pg_total_relation_size('users')), format_type(23, NULL)
### ok
SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position
### ok
SELECT relname, reltuples, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE relkind = 'r' AND n.nspname = 'public'
### ok
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'users'::regclass AND attnum > 0
### ok
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'orders'::regclass
### ok
SELECT obj_description('users'::regclass), col_description('users'::regclass, 5), indexname, indexdef FROM pg_indexes WHERE tablename = 'users'
### ok
SELECT relname, n_live_tup FROM pg_stat_user_tables
### ok
SELECT tablename FROM pg_tables WHERE schemaname = 'public' UNION SELECT viewname FROM pg_catalog.pg_views WHERE schemaname = 'public'
### ok
SELECT current_setting('TimeZone'), current_setting('server_version_num')::int > 100000, current_setting('work_mem', true)
### ok
SHOW server_version
### ok
SHOW timezone
### ok
EXPLAIN (COSTS off, VERBOSE) SELECT count(*) FROM orders GROUP BY status
### ok
EXPLAIN VERBOSE WITH a AS (SELECT 1) SELECT * FROM a
### ok
SELECT gen_random_uuid() IS NOT NULL, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, sha256('a'), clock_timestamp() > now() - interval '1 h'
### ok
SELECT xmlelement(name a, xmlattributes(1 AS b), 'c'), xmlforest(1 AS x), xpath('/a/text()', '<a>1</a>'::xml), xmlserialize(content '<a/>'::xml AS text)
### ok
SELECT * FROM xmltable('/r/i' PASSING xml '<r><i n="1">a</i></r>' COLUMNS n int PATH '@n', v text PATH '.')
### ok
SELECT point(1, 2) <-> point(3, 4), box '((0,0),(1,1))' @> point '(0.5,0.5)', area(box '((0,0),(1,1))'), circle '<(0,0),1>'
### ok
SELECT corr(a.n, b.n) FROM (SELECT date_trunc('day', timestamp) d, count(*) n FROM user_activities WHERE action = 'login' GROUP BY 1) a JOIN (SELECT date_trunc('day', timestamp) d, count(*) n FROM user_activities WHERE action = 'view' GROUP BY 1) b USING (d)
### ok
SELECT customer_revenue.name, revenue FROM customer_revenue ORDER BY revenue DESC LIMIT 5
### ok
SELECT public.users.name FROM public.users LIMIT 1
### ok
SELECT pg_catalog.count(*), pg_catalog.upper('a') FROM users
### ok
SELECT 1 OPERATOR(pg_catalog.+) 2
### ok
SELECT "name", "users"."id" AS "weird "" name", 1 AS select, 2 AS "from" FROM "users" LIMIT 1
### ok
SELECT 1 /* DROP TABLE users; */ -- ; DELETE FROM users
### ok
SELECT 'SELECT pg_sleep(1); COMMIT', 'INSERT INTO users', "name" FROM users WHERE name <> 'DELETE' LIMIT 1
### ok
SELECT ';', '--', '/*', $a$ ; DROP $a$
### ok
SELECT update, delete, insert FROM (SELECT 1 AS update, 2 AS delete, 3 AS insert) AS grant_revoke
### ok
SELECT created_at FROM users WHERE created_at >= date '2020-01-01' AND created_at < 'tomorrow'::date + 1
### ok
SELECT id FROM orders TABLESAMPLE SYSTEM (50) REPEATABLE (7)
### ok
SELECT * FROM ONLY users LIMIT 1
### ok
SELECT sum(n) FROM (SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3) s
### ok
SELECT coalesce(NULL, 1), greatest(1, 2, 3), least('a', 'b'), nullif('a', 'b'), 1 IS NULL, true IS NOT UNKNOWN, NULL ISNULL
### ok
SELECT num_nulls(1, NULL), num_nonnulls(1, 2), concat('a', 1, NULL)
### ok
WITH cohort AS (SELECT user_id, min(date_trunc('month', timestamp)) AS first FROM user_activities GROUP BY 1) SELECT first, date_trunc('month', a.timestamp), count(DISTINCT a.user_id) FROM cohort JOIN user_activities a USING (user_id) GROUP BY 1, 2 ORDER BY 1, 2
### ok
SELECT user_id, timestamp, sum(new) OVER (PARTITION BY user_id ORDER BY timestamp) FROM (SELECT *, CASE WHEN timestamp - lag(timestamp) OVER (PARTITION BY user_id ORDER BY timestamp) > interval '30 min' THEN 1 ELSE 0 END AS new FROM user_activities) s LIMIT 20
### ok
SELECT status, round(100.0 * count(*) / sum(count(*)) OVER (), 2) AS share FROM orders GROUP BY status ORDER BY share DESC
### ok
SELECT (SELECT max(total) FROM orders) - (SELECT min(total) FROM orders), ARRAY(SELECT DISTINCT status FROM orders ORDER BY 1)
### ok
SELECT EXTRACT(YEAR FROM ordered_at) AS y, EXTRACT(QUARTER FROM ordered_at) AS q, SUM(total) FROM orders GROUP BY 1, 2 ORDER BY 1, 2;
### ok
TABLE products ORDER BY price DESC LIMIT 3
### ok
VALUES (1), (2) ORDER BY 1 DESC
### ok
SELECT
### ok
SELECT txid_status(1), pg_is_in_recovery(), current_schemas(true), pg_backend_pid() > 0
### ok
SELECT percent_rank() OVER (ORDER BY total), nth_value(id, 2) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM orders LIMIT 1
### ok
SELECT has_table_privilege('users', 'SELECT'), pg_has_role(current_user, 'MEMBER')
