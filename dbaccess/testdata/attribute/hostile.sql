-- Statements on the objects of fixture.sql that call a function which is not allowed. A case is a line "### refused" and
-- the statement below it, up to the next such line.
### refused
SELECT t.fx_orders_leak FROM (TABLE fx_customers) c, fx_orders t
### refused
SELECT (r).fx_orders_leak FROM (SELECT t AS r FROM fx_orders t OFFSET 0) AS x
### refused
SELECT (now()).fx_tstz AS at
### refused
WITH fx_shadow AS (SELECT order_id AS id FROM fx_orders) SELECT s.id FROM fx_shadow s ORDER BY s.fx_rec, s.id
### refused
SELECT o.order_id, sum(o.amount) OVER (ORDER BY o.order_id ROWS BETWEEN (1).fx_big PRECEDING AND CURRENT ROW) AS run FROM fx_orders o
### refused
SELECT (g.fx_pair).a FROM generate_series(1, 1) AS g
### refused
SELECT o.order_id, sum(o.amount) OVER w FROM fx_orders o WINDOW w AS (PARTITION BY o.customer_id ORDER BY o.fx_any)
### refused
WITH src AS (SELECT 301 AS k, 'x' AS v) INSERT INTO fx_target (k, v) SELECT src.k, src.fx_rec FROM src
### refused
SELECT "fx_Mixed Case".fx_mixed_leak FROM "fx_Mixed Case"
### refused
SELECT z.pg_terminate_backend FROM abs(0) AS z
### refused
SELECT x.id, x.fx_rec FROM XMLTABLE('/r/i' PASSING XMLPARSE(DOCUMENT '<r><i id="1"/></r>') COLUMNS id int PATH '@id') AS x
### refused
SELECT b.fx_base_leak FROM ONLY fx_base b
### refused
SELECT q.d FROM (SELECT o.placed_on AS d, o.amount FROM fx_orders o) q GROUP BY q.d, q.amount HAVING max(q.fx_any) IS NOT NULL
### refused
SELECT b.qty[(b.id).fx_int] FROM fx_boxed b
### refused
WITH outerq AS (WITH innerq AS (SELECT s.pg_sleep::text AS t FROM generate_series(0, 0) s) SELECT * FROM innerq) SELECT count(t) FROM outerq
### refused
SELECT ARRAY(SELECT k.fx_customers_leak FROM fx_customers k) AS everything
### refused
SELECT r.a, r.fx_rec FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY['x', 'y'])) AS r(a, b)
### refused
SELECT o.fx_long_name_padded_to_sixty_three_bytes_xxxxxxxxxxxxxxxxxxxxxxYYYY FROM fx_orders o
### refused
SELECT (d.o).fx_orders_leak FROM fx_docs d
### refused
SELECT o.order_id, v.tag FROM fx_orders o, LATERAL (VALUES (o.status), (o.fx_orders_leak)) AS v(tag)
### refused
SELECT public.fx_orders.fx_orders_leak FROM public.fx_orders
### refused
SELECT s._fx_pos FROM unnest(ARRAY['{1,2}']) AS s
### refused
SELECT ch.fx_base_leak, ch.extra FROM fx_child ch
### refused
SELECT g.fx_var FROM generate_series(1, 2) AS g
### refused
SELECT to_json(ROW(o.order_id, o.fx_orders_leak)) FROM fx_orders o
### refused
SELECT COALESCE(c.email, c.fx_customers_leak) AS a, GREATEST('A', c.fx_customers_leak) AS b FROM fx_customers c
### refused
SELECT (d.docid).lo_get FROM fx_docs AS d
### refused
SELECT g.g, g.fx_def FROM generate_series(1, 2) AS g
### refused
SELECT c.name FROM fx_customers c WHERE EXISTS (SELECT (d.body).ts_stat FROM fx_docs d)
### refused
SELECT v.customer_id FROM fx_v_totals v WHERE v.fx_rec <> v.total::text
### refused
SELECT g.fx_over FROM generate_series(1, 2) g
### refused
MERGE INTO fx_target t USING fx_orders o ON t.k = o.order_id WHEN MATCHED THEN UPDATE SET v = o.fx_orders_leak
### refused
SELECT j.c1 FROM (fx_shadow a CROSS JOIN (SELECT 1 AS one) b) AS j(c1, c2, c3, c4, c5, c6, c7, c8) WHERE j.fx_any > ''
### refused
SELECT d.fx_dt FROM current_date AS d
### refused
INSERT INTO fx_target (k, v) SELECT o.order_id + 100, o.fx_orders_leak FROM fx_orders o
### refused
SELECT qty[1].fx_int FROM fx_boxed
### refused
SELECT ((b.addr).city).fx_txt FROM fx_boxed b
### refused
SELECT o.fx_aggany AS n FROM fx_orders AS o
### refused
UPDATE fx_target SET (v, n) = (SELECT 'a', s.nextval FROM unnest(ARRAY['fx_seq']) s) WHERE k = 2
### refused
SELECT o.status, string_agg(o.fx_orders_leak, ',') AS list FROM fx_orders o GROUP BY o.status
### refused
SELECT a.name FROM fx_customers a JOIN generate_series(1, 3) AS lk ON lk.pg_try_advisory_xact_lock AND a.customer_id = lk.lk
### refused
INSERT INTO fx_target (k, v, n) VALUES (201, 'a', (7).fx_int), (202, 'b', 3)
### refused
VALUES (1, (2).fx_int), (3, 4)
### refused
SELECT p.full_name, p.fx_person_leak FROM fx_people p
### refused
SELECT y.fx_num FROM EXTRACT(year FROM date '2024-05-05') AS y
### refused
SELECT s.fx_any AS harmless, s.fx_rec AS harmful FROM fx_shadow AS s(c1, c2, c3, c4, c5, c6, c7, c8x, c9x, c10x) CROSS JOIN LATERAL (SELECT 1 AS fx_rec) q
### refused
SELECT fx_shadow.fx_any, fx_shadow.status FROM fx_orders AS fx_shadow
### refused
SELECT ju.customer_id, ju.fx_rec FROM fx_orders o JOIN fx_customers c USING (customer_id) AS ju
### refused
SELECT fx_orders.order_id FROM fx_orders WHERE fx_orders.fx_any <> ''
### refused
EXPLAIN ANALYZE WITH w AS (SELECT s.pg_sleep FROM generate_series(0, 0) s) SELECT * FROM w
### refused
SELECT xmlelement(name o, xmlattributes(o.status AS s), o.fx_orders_leak) FROM fx_orders o
### refused
SELECT s.setseed::text, s.s FROM generate_series(0, 1) s
### refused
SELECT c.fx_txt FROM COALESCE(NULL, 'x'::text) AS c
### refused
SELECT e.key FROM jsonb_each('{"a":1}') e ORDER BY e.fx_any
### refused
SELECT e.fx_mail FROM unnest(ARRAY(SELECT c.email FROM fx_customers c)) AS e
### refused
SELECT c.name FROM fx_customers c ORDER BY c.name OFFSET (SELECT k.fx_aggany - k.fx_aggany FROM fx_customers k)
### refused
SELECT g.fx_agg FROM generate_series(1, 4) AS g
### refused
SELECT o.order_id FROM fx_orders o ORDER BY 1 FETCH FIRST ((3).fx_int) ROWS ONLY
### refused
SELECT j.a, j.fx_rec FROM json_to_recordset('[{"a":1}]') AS j(a int, b text)
### refused
INSERT INTO fx_target (k, v) VALUES (401, 'z') RETURNING k, fx_target.fx_target_leak
### refused
SELECT a.order_id, b.fx_orders_leak FROM fx_orders a, fx_orders b WHERE a.order_id = b.order_id
### refused
SELECT (o).fx_orders_leak FROM fx_orders o
### refused
SELECT c.country, count(*) FROM fx_customers c GROUP BY GROUPING SETS ((c.country), (c.country, c.fx_customers_leak))
### refused
SELECT (b.home).fx_addr_leak FROM fx_boxed b
### refused
SELECT (q.ts_stat).* FROM unnest(ARRAY['SELECT to_tsvector(note) FROM fx_orders']::text[]) AS q(sql_text)
### refused
SELECT array_agg(o.order_id ORDER BY o.fx_rec, o.order_id) FROM fx_orders AS o
### refused
SELECT count(*) FROM fx_boxed b GROUP BY (b.addrs[1]).fx_addr_leak
### refused
SELECT v.word FROM string_to_table('SELECT to_tsvector(name) FROM fx_customers', '#') AS part(line), LATERAL (SELECT (part.ts_stat).word) v
### refused
DELETE FROM fx_target USING (VALUES (1), (2)) AS kill(k) WHERE fx_target.k = kill.k AND kill.fx_rec = 'FX!'
### refused
SELECT s.U&"!0070g_sleep" UESCAPE '!' FROM generate_series(0, 0) AS s
### refused
SELECT count(*) FILTER (WHERE o.fx_any IS NOT NULL) AS n FROM fx_orders o
### refused
SELECT q.fx_any FROM (SELECT CASE WHEN s.id > 0 THEN s.fx_any END FROM fx_shadow s) q
### refused
SELECT c.name, (SELECT max(o.fx_orders_leak) FROM fx_orders o WHERE o.customer_id = c.customer_id) AS last FROM fx_customers c
### refused
INSERT INTO fx_target AS t (k, v) VALUES (2, 'z') ON CONFLICT (k) DO UPDATE SET v = excluded.v WHERE t.fx_target_leak <> excluded.v
### refused
WITH src AS (SELECT 601 AS k) MERGE INTO fx_target t USING src ON t.k = src.k WHEN NOT MATCHED AND ((0).pg_sleep)::text = '' THEN INSERT (k) VALUES (src.k)
### refused
MERGE INTO fx_target t USING fx_orders o ON t.k = o.order_id WHEN MATCHED AND t.fx_target_leak <> '' THEN UPDATE SET n = 0 WHEN NOT MATCHED THEN DO NOTHING
### refused
SELECT t.order_id FROM fx_orders t TABLESAMPLE SYSTEM ((100).fx_int * 100)
### refused
SELECT S.PG_Sleep FROM GENERATE_SERIES(0, 0) s
### refused
SELECT (g.fx_outp).b FROM generate_series(1, 1) g
### refused
SELECT c.name, o.amount FROM fx_customers c JOIN fx_orders o ON o.customer_id = c.customer_id AND o.fx_rec = 'FX!'
### refused
SELECT (d.body).fx_run AS body FROM fx_docs d WHERE d.id = 1
### refused
SELECT o.order_id FROM fx_orders o WHERE o.fx_été = 'FX!'
### refused
SELECT n.pg_sleep FROM CAST('0' AS float8) AS n
### refused
WITH ins AS (INSERT INTO fx_target (k, v) VALUES (701, 'w') RETURNING k, v) SELECT ins.k, ins.fx_rec FROM ins
### refused
SELECT c.name, (SELECT count(*) FROM fx_orders o WHERE o.order_id IN (SELECT x.order_id FROM fx_orders x WHERE length(c.fx_customers_leak) > 0)) AS n FROM fx_customers c
### refused
SELECT (interval '1 ms').pg_sleep_for
### refused
WITH RECURSIVE a AS (SELECT fx_shadow.fx_any AS v FROM fx_shadow), fx_shadow AS (SELECT 1 AS id) SELECT v FROM a
### refused
SELECT q.fx_rec FROM (SELECT 1 AS "FX_REC", 2 AS "Fx_Rec") AS q
### refused
SELECT s.ts_stat FROM unnest(ARRAY[$q$SELECT to_tsvector('a ; -- b') FROM fx_orders$q$, E'SELECT to_tsvector(\'x\')']) AS s
### refused
SELECT (g.pg_stat_get_activity).query FROM generate_series(0, 0) AS g
### refused
DELETE FROM fx_target t WHERE t.k = 1 RETURNING (t).fx_target_leak
### refused
SELECT s.fx_pos FROM unnest(ARRAY['1', '2']) AS s
### refused
SELECT count(*) AS n FROM generate_series(1, 4) AS g(n) HAVING g.fx_agg > 1
### refused
SELECT (CAST('a' AS text)).fx_over
### refused
SELECT count(*) FROM generate_series(9100, 9101) AS lk(id) GROUP BY lk.id, lk.pg_try_advisory_lock HAVING bool_and(lk.pg_try_advisory_lock)
### refused
SELECT b.pg_blocking_pids FROM unnest(ARRAY[1]) AS b(backend)
### refused
SELECT (b.addr).city, (b.addr).fx_addr_leak FROM fx_boxed b
### refused
SELECT seq.nextval FROM unnest(ARRAY['fx_seq']) AS seq
### refused
SELECT u.city, u.fx_addr_leak FROM fx_boxed b, unnest(b.addrs) AS u
### refused
SELECT (ARRAY[1, 2]).fx_arr, (5).fx_var
### refused
DELETE FROM fx_target d WHERE d.fx_target_leak = 'FX!' AND d.k = 2
### refused
SELECT m.m FROM unnest(ARRAY[-1]) AS m WHERE m.lo_creat > 0
### refused
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY o.fx_defany) AS med FROM fx_orders o
### refused
SELECT s.U&"pg\005Fsleep" FROM generate_series(0, 0) AS s
### refused
EXPLAIN (ANALYZE, COSTS OFF) SELECT o.fx_orders_leak FROM fx_orders o
### refused
SELECT g.n FROM generate_series(1, 3) AS g(n) WHERE g.pg_stat_get_backend_activity IS NOT NULL
### refused
SELECT q.fx_rec FROM (SELECT 1 AS a, 'x' AS b) q
### refused
SELECT b.id FROM fx_boxed b WHERE b.qty[2].pg_sleep::text = ''
### refused
SELECT z.fx_any FROM (SELECT 1 AS fx_any, 2 AS b) AS z(b, c)
### refused
SELECT (SELECT t.fx_any FROM (VALUES ('v')) t(fx_any)) AS a, (SELECT t.fx_any FROM (VALUES ('v')) t(other)) AS b
### refused
SELECT (o.*).fx_orders_leak FROM fx_orders o
### refused
SELECT s.ts_stat FROM unnest(ARRAY['SELECT to_tsvector(note) FROM fx_orders']) AS s
### refused
SELECT convert_from(d.lo_get, 'UTF8') AS body FROM unnest(ARRAY[424242]) AS d(docid)
### refused
SELECT fx_orders.fx_orders_leak FROM (WITH fx_orders AS (SELECT 'x' AS fx_orders_leak) SELECT * FROM fx_orders) AS fx_orders UNION ALL SELECT fx_orders.fx_orders_leak FROM fx_orders
### refused
SELECT o.order_id, row_number() OVER (PARTITION BY o.fx_orders_leak ORDER BY o.placed_on) AS rn FROM fx_orders o
### refused
SELECT b.addrs[1].fx_addr_leak FROM fx_boxed b
### refused
SELECT u.fx_any FROM (SELECT 1 AS id UNION ALL SELECT 2 AS fx_any) AS u
### refused
SELECT v.fx_any, v.renamed FROM fx_v_shadow v
### refused
SELECT s.pg_sleep FROM fx_shadow s WHERE s.id IN (SELECT 1 FROM generate_series(0, 0) s WHERE s.pg_sleep::text = '')
### refused
SELECT n.n FROM generate_series(0, 0) AS n WHERE EXISTS (SELECT (n.pg_stat_get_activity).pid FROM fx_shadow)
### refused
SELECT (o.fx_pair).b AS label FROM fx_orders AS o WHERE o.status = 'paid'
### refused
SELECT s.fx_any FROM fx_shadow s JOIN fx_base b USING (id) AS ju ORDER BY ju.fx_any
### refused
UPDATE fx_target t SET n = 5 FROM generate_series(0, 0) w WHERE w.pg_sleep::text = '' AND t.k = 1
### refused
SELECT c.name FROM fx_customers c WHERE c.age BETWEEN (c.age).fx_int AND 100
### refused
MERGE INTO fx_target t USING (VALUES (1, 'm')) AS s(k, v) ON t.k = s.k AND s.fx_rec = 'FX!' WHEN MATCHED THEN UPDATE SET v = s.v
### refused
SELECT count(*) FROM generate_series(0, 0) pid WHERE pid.pg_cancel_backend
### refused
SELECT d.id, d.fx_any FROM fx_dropped d
### refused
SELECT (SELECT max(s.nextval) FROM fx_shadow s) AS a, (SELECT s.nextval FROM unnest(ARRAY['fx_seq']) s) AS b
### refused
SELECT (b.doc).fx_xm, (b.span).fx_rng FROM fx_boxed b
### refused
SELECT count(*) FILTER (WHERE u.fx_addr_leak = 'FX!') FROM fx_boxed b CROSS JOIN LATERAL unnest(b.addrs) AS u(x, y, z)
### refused
INSERT INTO fx_target (k, v) VALUES (1, 'z') ON CONFLICT (k) DO UPDATE SET v = (excluded.v).fx_txt
### refused
SELECT g.g FROM generate_series(1, 2) g WHERE g.fx_pos > 0
### refused
SELECT o.status FROM fx_orders o GROUP BY o.status HAVING count(*) > 0 AND min(o.amount) > 0 AND (SELECT x.fx_aggany FROM fx_orders x) > 0
### refused
SELECT (b.cfg -> 'n').fx_js FROM fx_boxed b
### refused
INSERT INTO fx_target (k, v) VALUES (1, 'z') ON CONFLICT (k) DO UPDATE SET v = excluded.fx_target_leak
### refused
SELECT (q.s).pg_sleep FROM (SELECT s.* FROM generate_series(0, 0) s) q
### refused
SELECT w.fx_mood FROM string_to_table('low,ok', ',') AS w
### refused
SELECT e.kind, e.fx_events_leak FROM fx_events e
### refused
SELECT q."FX_UP" FROM (SELECT 1 AS fx_up) AS q
### refused
SELECT v.status, v.fx_v_leak FROM fx_v_orders v
### refused
UPDATE fx_target SET v = fx_target.fx_target_leak WHERE k = 1
### refused
SELECT s/* a */./* b
 */pg_sleep -- the end
FROM generate_series(0, 0) s
### refused
SELECT q.fx_any FROM (SELECT s.fx_any || '!' FROM fx_shadow s) AS q
### refused
SELECT (SELECT 0).pg_cancel_backend
### refused
WITH ins AS (INSERT INTO fx_target (k, v) SELECT 801, (g.pg_stat_get_activity).query FROM generate_series(0, 0) g LIMIT 1 RETURNING k) SELECT k FROM ins
### refused
SELECT o.order_id, o.fx_orders_leak FROM fx_orders o
### refused
SELECT id FROM fx_boxed ORDER BY (addr).fx_addr_leak, id
### refused
SELECT m.money, m.fx_mv_leak FROM fx_mv_orders m
### refused
SELECT (0).pg_sleep
### refused
SELECT p.current_setting AS v FROM unnest(ARRAY['data_directory_mode', 'server_version']) AS p(setting)
### refused
SELECT x.id FROM fx_docs d, XMLTABLE('/r/i' PASSING xmlelement(name r, xmlelement(name i, (d.body).fx_txt)) COLUMNS id text PATH '.') AS x
### refused
SELECT s.a, s.fx_any FROM unnest(ARRAY[1, 2], ARRAY['x', 'y']) AS s(a, b)
### refused
SELECT ((o.*).fx_orders_tab).y FROM fx_orders o
### refused
SELECT m.m FROM unnest(enum_range(NULL::fx_mood)) m WHERE m.fx_enum IS NOT NULL
### refused
SELECT k.k FROM generate_series(900, 901) AS k ORDER BY k.pg_advisory_lock::text
### refused
SELECT 1 AS one FROM generate_series(0, 0) WHERE generate_series.pg_sleep::text = ''
### refused
SELECT upper.fx_txt FROM upper('select 1')
### refused
SELECT s.fx_dtext FROM unnest(ARRAY['a', 'b']) AS s(word)
### refused
SELECT b.id FROM fx_boxed b WHERE b.id = ANY ((b.qty).fx_intarr)
### refused
SELECT s.pg_sleep FROM unnest(ARRAY[0, 0]) s
### refused
SELECT 1 AS one FROM generate_series(0, 0) AS U&"\0073" WHERE s.pg_cancel_backend
### refused
SELECT (ARRAY[1, 2])[1].fx_int
### refused
SELECT (ROW(1, 'a')).fx_rec
### refused
SELECT ((1).fx_int).fx_any
### refused
SELECT c.name FROM fx_customers c WHERE c.name NOT LIKE c.fx_customers_leak || '%'
### refused
SELECT q.fx_été FROM (SELECT 1 AS fx_ÉTÉ) AS q
### refused
SELECT o.order_id FROM fx_orders o LIMIT length((0).pg_sleep::text)
### refused
SELECT c.name FROM fx_customers c WHERE (c.name).fx_dtext = 'Ana'
### refused
SELECT c.name FROM fx_customers c LEFT JOIN generate_series(0, 0) w ON w.pg_sleep::text = '' AND c.age > w.w
### refused
SELECT (1 = 1).fx_bool AND true
### refused
WITH t(a, b) AS (SELECT 1 AS fx_any, 2) SELECT t.a FROM t WHERE t.fx_any = 'FX!'
### refused
MERGE INTO fx_target USING generate_series(501, 502) AS g ON fx_target.k = g WHEN NOT MATCHED THEN INSERT (k, v) VALUES (g.g, ((g.g)::text).fx_txt)
### refused
SELECT o.fx_pair FROM fx_orders o
### refused
SELECT ARRAY[o.status, o.fx_orders_leak] FROM fx_orders o
### refused
SELECT DISTINCT ON (o.fx_orders_leak) o.order_id, o.status FROM fx_orders o ORDER BY o.fx_orders_leak, o.placed_on DESC
### refused
SELECT c.name FROM fx_customers c WHERE 'FX!' IN (SELECT k.fx_customers_leak FROM fx_customers k)
### refused
WITH t AS (SELECT 1 AS a, 2 AS b) SELECT t.a, t.fx_rec FROM t
### refused
SELECT (current_date).fx_dt, (current_user).fx_nm
### refused
SELECT count(*) AS n FROM fx_customers c GROUP BY ROLLUP (c.fx_customers_leak)
### refused
SELECT CASE WHEN p.pg_terminate_backend THEN 'gone' ELSE 'alive' END AS state FROM unnest('{0}'::int[]) AS p(pid)
### refused
UPDATE fx_target t SET v = o.fx_orders_leak FROM fx_orders o WHERE o.order_id = t.k
### refused
VALUES ('a', NULL), ('b', ('SELECT * FROM fx_orders'::text).fx_run)
### refused
SELECT w.t FROM unnest(ARRAY[timestamptz '2020-01-01', '2020-01-02']) AS w(t) ORDER BY w.pg_sleep_until::text
### refused
SELECT t.fx_orders_leak FROM fx_orders AS t TABLESAMPLE BERNOULLI (100) REPEATABLE (7)
### refused
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT r.n + (r.n).fx_int FROM r WHERE r.n < 3) SELECT n FROM r
### refused
SELECT n.fx_small FROM unnest(ARRAY[1, 2]::fx_smallint[]) n
### refused
SELECT e.event_id FROM fx_events_2024 e ORDER BY e.fx_events_leak, e.event_id
### refused
SELECT s.id, l.v FROM fx_shadow s CROSS JOIN LATERAL (SELECT s.fx_any AS v FROM (SELECT s.id AS k) s) l
### refused
SELECT j.fx_rec FROM (fx_orders a JOIN fx_customers b ON a.customer_id = b.customer_id) AS j
### refused
WITH fx_orders AS (SELECT 1 AS fx_orders_leak) SELECT o.fx_orders_leak FROM public.fx_orders o
### refused
SELECT o."fx_Weird Name" FROM fx_orders o
### refused
SELECT g.id FROM fx_grandchild g WHERE g.fx_base_leak IS NOT NULL
### refused
SELECT "S"."pg_sleep" FROM generate_series(0, 0) AS "S"
### refused
SELECT m.fx_arr FROM regexp_matches('a1b2', '[0-9]', 'g') AS m
### refused
SELECT o.order_id FROM fx_orders o ORDER BY o.order_id LIMIT (SELECT sq.nextval FROM unnest(ARRAY['fx_seq']) sq)
### refused
SELECT (public.fx_boxed.addr).fx_addr_leak FROM public.fx_boxed
### refused
SELECT fx_customers.fx_orders_leak FROM fx_orders AS fx_customers
### refused
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT r.n + 1 AS fx_any FROM r WHERE r.n < 2) SELECT r.fx_any FROM r
### refused
WITH RECURSIVE r(n, t) AS (SELECT 1, 'start' UNION ALL SELECT r.n + 1, r.fx_rec FROM r WHERE r.n < 3) SELECT r.n, r.t FROM r
### refused
SELECT s.fx_email2 FROM unnest(ARRAY['a']) AS s
### refused
SELECT s.ts_stat::text FROM fx_shadow s EXCEPT SELECT s.ts_stat::text FROM unnest(ARRAY['SELECT to_tsvector(note) FROM fx_orders']) s
### refused
SELECT v.fx_rec FROM (VALUES (1, 'a'), (2, 'b')) AS v(id, label)
### refused
SELECT el.fx_js FROM fx_boxed b, jsonb_array_elements(b.cfg -> 'n') AS el
### refused
SELECT g.fx_varany AS v FROM generate_series(1, 2) AS g(i)
### refused
SELECT s.val, s.fx_rec FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS s(val, pos)
### refused
SELECT order_id FROM fx_orders ORDER BY fx.public.fx_orders.fx_orders_leak
### refused
SELECT o.order_id FROM fx_orders o WHERE (o.status, o.fx_orders_leak) IN (('paid', 'FX!'))
### refused
SELECT r.pg_sleep FROM ROWS FROM (generate_series(0, 0)) AS r
### refused
SELECT max(fx_people.fx_person_leak) FROM fx_people
### refused
WITH fx_shadow AS (SELECT 1 AS id, 'x' AS v) SELECT fx_shadow.fx_any FROM fx_shadow
### refused
SELECT v.column1 FROM (VALUES (1), (2)) AS v GROUP BY v.column1, v.fx_any HAVING v.fx_any = 'FX!'
### refused
SELECT r.to_regclass, r.row_security_active FROM unnest(ARRAY['fx_orders']) r
### refused
SELECT s.id FROM fx_shadow s(id, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12) WHERE s.fx_shadow_leak > ''
### refused
SELECT g.n, x.x FROM generate_series(1, 2) AS g(n), LATERAL generate_series(1, (g.n).fx_int) AS x
### refused
SELECT o.order_id, w.w FROM fx_orders o CROSS JOIN LATERAL string_to_table(o.fx_orders_leak, '!') AS w
### refused
SELECT c.name FROM fx_customers c WHERE EXISTS (SELECT 1 FROM fx_orders o WHERE o.customer_id = c.customer_id AND c.fx_customers_leak = 'FX!')
### refused
SELECT l.n FROM generate_series(1, 2) g, LATERAL (SELECT g.fx_set AS n) l
### refused
SELECT (x.r).fx_orders_leak FROM (SELECT o AS r FROM fx_orders o) AS x
### refused
SELECT s.fx_any FROM fx_shadow AS s(id, a, b, c, d, e, f, g)
### refused
UPDATE fx_target AS u SET n = n + 1 WHERE u.k = 1 RETURNING u.k, u.fx_any
### refused
SELECT x.nextval + 0 AS next_id FROM json_array_elements_text('["fx_seq"]') AS x
### refused
EXPLAIN SELECT (5).fx_imm FROM fx_orders
### refused
SELECT order_id, fx_customers.fx_customers_leak FROM fx_orders NATURAL JOIN fx_customers
### refused
SELECT 1 AS one, count(*) FROM unnest(ARRAY[interval '1 ms', interval '2 ms']) AS wait GROUP BY wait.pg_sleep_for::text
### refused
SELECT (CASE WHEN true THEN 'a'::text ELSE 'b' END).fx_txt
### refused
SELECT b.qty[1:2].fx_intarr FROM fx_boxed b
