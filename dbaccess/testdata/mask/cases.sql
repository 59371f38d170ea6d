-- A case is a line "### outcome" and the statement below it. The outcome is the numbers of the
-- masked output columns or "none", with "told" if the answer says that it has values made of masks,
-- or the reason of the error.
### 1
SELECT ssn FROM staff
### 1,2
SELECT ssn, pay FROM staff
### 1
SELECT ssn AS harmless FROM staff
### 2
SELECT name, s.ssn FROM staff s ORDER BY name
### 2
SELECT name, public.staff.ssn FROM public.staff
### 3,4,6
SELECT * FROM staff
### 3,4,6
TABLE staff
### 4,5,7
SELECT 1, s.* FROM staff AS s WHERE s.id = 1
### 8,9,11
SELECT l.*, s.* FROM logs l JOIN staff s ON s.id = l.staff_id
### 8,9,11
SELECT * FROM logs, staff
### 7,8,10
SELECT * FROM logs JOIN staff USING (id)
### 3,4,6
SELECT b, c, d, e, f, g FROM staff AS s(b, c, d, e, f, g)
### 1
SELECT d FROM staff AS s(b, c, d)
### none
SELECT ssn FROM staff AS s(ssn, name, hidden, more, boss, last)
### 1
SELECT x FROM (SELECT ssn AS x FROM staff) AS t
### 1
SELECT z FROM (SELECT y AS z FROM (SELECT ssn AS y FROM staff) AS a) AS b
### 2
SELECT * FROM (SELECT id, ssn FROM staff) AS t(a, b)
### 1
SELECT t.b FROM (SELECT id, ssn FROM staff) AS t(a, b) ORDER BY t.a
### 2
WITH w AS (SELECT id, ssn AS x FROM staff) SELECT id, x FROM w
### 2
WITH w(a, b) AS (SELECT id, ssn FROM staff) SELECT * FROM w ORDER BY 1
### 1
WITH w AS (SELECT ssn AS x FROM staff), v AS (SELECT x AS y FROM w) SELECT y FROM v
### 1
WITH w AS MATERIALIZED (SELECT ssn FROM staff) SELECT ssn FROM w
### 1
SELECT (SELECT ssn FROM staff WHERE id = 1)
### 2
SELECT l.id, (SELECT s.ssn FROM staff s WHERE s.id = l.staff_id) AS of FROM logs l
### 1
SELECT t.of FROM (SELECT (SELECT s.ssn FROM staff s WHERE s.id = 1) AS of) AS t
### 2
SELECT l.id, x.ssn FROM logs l CROSS JOIN LATERAL (SELECT s.ssn FROM staff s WHERE s.id = l.staff_id) x
### 1
SELECT x.v FROM staff s, LATERAL (SELECT s.ssn AS v) x
### 1
SELECT number FROM directory
### 3
SELECT * FROM directory ORDER BY id LIMIT 1
### 1
SELECT n FROM over_directory
### 4,5,7
SELECT * FROM joined
### 2
SELECT name, ssn FROM joined
### 1
SELECT kept_ssn FROM kept
### 2
SELECT id, note FROM shown
### 1
SELECT ssn FROM retired
### 3,4,6
SELECT * FROM retired
### 1
SELECT ssn FROM ONLY staff
### 1
SELECT lower_ssn FROM staff
### 1
SELECT code FROM parts
### 1
SELECT code FROM parts_1
### 2
SELECT count(*) OVER (), ssn FROM staff
### 1
SELECT ssn FROM staff GROUP BY id
### 2
SELECT s.name, s.ssn FROM staff s LEFT JOIN staff b ON b.id = s.boss WHERE b.name IS NOT NULL
### 1
SELECT ssn FROM staff TABLESAMPLE BERNOULLI (100)
### 1
SELECT s.ssn FROM staff s, generate_series(1, 2) AS g(n) WHERE g.n = s.id
### 1
SELECT ssn FROM staff LIMIT 1 OFFSET 1
### 1
SELECT j.ssn FROM (staff s JOIN (SELECT id AS log FROM logs) l ON l.log = s.id) AS j
### 2
SELECT DISTINCT ON (name) name, ssn FROM staff ORDER BY name
### none
SELECT id, name FROM staff WHERE name = 'Ann'
### none
SELECT count(*), min(name) FROM staff
### none
SELECT name, count(*) FROM staff GROUP BY name HAVING count(*) > 0 ORDER BY count DESC
### none
SELECT name AS ssn FROM staff ORDER BY ssn
### none
SELECT x.name FROM (SELECT * FROM staff) x ORDER BY x.name
### none
SELECT ssn FROM logs ORDER BY ssn
### none
SELECT l.ssn || 'x' FROM logs l JOIN staff s ON s.id = l.staff_id WHERE l.ssn = 'open'
### none
SELECT ssn, upper(ssn) FROM elsewhere.staff GROUP BY ssn
### none
WITH staff AS (SELECT 'open' AS ssn) SELECT upper(ssn) FROM staff
### none
SELECT id FROM logs WHERE EXISTS (SELECT ssn FROM staff WHERE staff.id = logs.staff_id)
### none
SELECT id FROM logs WHERE EXISTS (SELECT * FROM staff WHERE staff.id = logs.staff_id)
### none
SELECT id FROM logs WHERE staff_id IN (SELECT id FROM staff WHERE name LIKE 'A%')
### none
SELECT id FROM directory WHERE name = 'Ann'
### none
SELECT name FROM names WHERE id = 1
### none
SELECT upper(name) FROM joined WHERE text = 'in'
### none
SELECT l.meta->>'a', j.key FROM logs l, jsonb_each(l.meta) j, staff s WHERE s.id = l.id
### none
WITH RECURSIVE up AS (SELECT id, boss FROM staff WHERE id = 2 UNION ALL SELECT s.id, s.boss FROM staff s JOIN up ON up.boss = s.id) SELECT * FROM up
### none
SELECT id, rank() OVER (PARTITION BY boss ORDER BY name) FROM staff
### none
SELECT id FROM staff UNION ALL SELECT id FROM logs ORDER BY id
### none
EXPLAIN SELECT name FROM staff WHERE id = 1
### unknown-column
SELECT ctid, tableoid FROM staff
### none
SELECT to_jsonb(x) FROM (SELECT id, name FROM staff) x
### none
SELECT array_agg(name ORDER BY id) FILTER (WHERE boss IS NULL) FROM staff
### none
SELECT array(SELECT name FROM staff), (SELECT max(name) FROM staff)
### none
SELECT s FROM generate_series(1, 2) s, staff
### masked-column
SELECT id FROM staff WHERE ssn = 'SECRET-1'
### masked-column
SELECT id FROM staff WHERE ssn LIKE 'S%' OR name = 'x'
### masked-column
SELECT id FROM staff WHERE ssn IS NULL
### masked-column
SELECT id FROM staff WHERE pay BETWEEN 1 AND 15
### masked-column
SELECT id FROM staff s WHERE ssn IN (SELECT text FROM logs)
### masked-column
SELECT id FROM logs WHERE text IN (SELECT ssn FROM staff)
### masked-column
SELECT id FROM logs WHERE text = ANY (SELECT ssn FROM staff)
### masked-column
SELECT id FROM logs l WHERE EXISTS (SELECT FROM staff s WHERE s.ssn = l.text)
### masked-column
SELECT id FROM logs WHERE text = (SELECT ssn FROM staff LIMIT 1)
### masked-column
SELECT 1 FROM staff a JOIN staff b ON a.ssn = b.ssn
### masked-column
SELECT 1 FROM staff a JOIN logs b USING (ssn)
### masked-column
SELECT 1 FROM staff NATURAL JOIN logs
### masked-column
SELECT ssn FROM staff GROUP BY ssn
### masked-column
SELECT count(*) FROM staff GROUP BY id, ssn
### masked-column
SELECT ssn FROM staff GROUP BY 1
### masked-column
SELECT ssn, count(*) FROM staff GROUP BY ROLLUP (1)
### masked-column
SELECT count(*) FROM staff GROUP BY CUBE (id, ssn)
### masked-column
SELECT id FROM staff ORDER BY ssn
### masked-column
SELECT ssn AS x FROM staff ORDER BY x
### masked-column
SELECT id, ssn FROM staff ORDER BY 2
### masked-column
SELECT id FROM staff ORDER BY staff.ssn DESC NULLS LAST
### masked-column
SELECT x.* FROM (SELECT id, ssn AS y FROM staff) x ORDER BY y
### masked-column
SELECT DISTINCT ssn FROM staff
### masked-column
SELECT DISTINCT * FROM staff
### masked-column
SELECT DISTINCT ON (ssn) id FROM staff
### masked-column
SELECT DISTINCT ON (2) id, ssn FROM staff
### masked-column
SELECT ssn FROM staff UNION SELECT 'a'
### 1
SELECT 'a' UNION ALL SELECT ssn FROM staff
### masked-column
SELECT text FROM logs INTERSECT SELECT ssn FROM staff
### masked-column
SELECT text FROM logs EXCEPT SELECT kept_ssn FROM kept
### masked-column
SELECT ssn::text FROM staff
### masked-column
SELECT CAST(pay AS int) FROM staff
### masked-column
SELECT upper(ssn) FROM staff
### masked-column
SELECT ssn || '' FROM staff
### masked-column
SELECT ssn COLLATE "C" FROM staff
### masked-column
SELECT coalesce(ssn, 'x') FROM staff
### masked-column
SELECT CASE WHEN ssn > 'S' THEN 1 END FROM staff
### masked-column
SELECT CASE ssn WHEN 'SECRET-1' THEN 1 END FROM staff
### masked-column
SELECT max(ssn) FROM staff
### masked-column
SELECT count(ssn) FROM staff
### masked-column
SELECT count(*) FILTER (WHERE ssn > 'S') FROM staff
### masked-column
SELECT array_agg(id ORDER BY ssn) FROM staff
### masked-column
SELECT rank() OVER (ORDER BY ssn) FROM staff
### masked-column
SELECT rank() OVER w FROM staff WINDOW w AS (PARTITION BY ssn)
### masked-column
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY pay) FROM staff
### masked-column
SELECT ARRAY[ssn] FROM staff
### masked-column
SELECT ARRAY(SELECT ssn FROM staff)
### masked-column
SELECT ROW(id, ssn) FROM staff
### none told
SELECT ROW(s.*) FROM staff s
### masked-column
SELECT (id, ssn) = (1, 'x') FROM staff
### none told
SELECT s FROM staff s
### none told
SELECT staff FROM staff
### none told
SELECT u FROM staff u, generate_series(1, 2) g
### none told
SELECT row_to_json(s) FROM staff s
### none told
SELECT to_jsonb(s.*) FROM staff s
### none told
SELECT s.*::text FROM staff s
### none told
SELECT s::text FROM staff s
### 1
SELECT (s).ssn FROM staff s
### none told
SELECT json_agg(x) FROM (SELECT id, ssn FROM staff) x
### none told
SELECT count(DISTINCT s) FROM staff s
### none told
SELECT s IS NULL FROM staff s
### none told
SELECT upper(name) FROM staff u GROUP BY u, name
### none told
SELECT upper(name) FROM staff u ORDER BY u
### none told
SELECT x.to_jsonb FROM (SELECT ssn, upper(name) FROM staff) x
### none told
SELECT x.row_to_json FROM (SELECT ssn FROM staff) x
### failed
SELECT s.told FROM staff s
### failed
SELECT told(s) FROM staff s
### masked-column
SELECT xmlforest(ssn) FROM staff
### masked-column
SELECT xmlelement(name a, ssn) FROM staff
### masked-column
SELECT * FROM staff s, unnest(ARRAY[s.ssn])
### masked-column
SELECT v FROM staff s, LATERAL (VALUES (s.ssn)) AS t(v)
### masked-column
SELECT length(v) FROM staff s, LATERAL (SELECT s.ssn AS v) x
### masked-column
SELECT generate_series(1, pay::int) FROM staff
### masked-column
SELECT id FROM staff LIMIT (SELECT pay FROM staff WHERE id = 1)
### masked-column
VALUES ((SELECT ssn FROM staff LIMIT 1))
### masked-column
SELECT x.y || '' FROM (SELECT ssn AS y FROM staff) x
### masked-column
WITH w AS (SELECT ssn AS x FROM staff) SELECT upper(x) FROM w
### masked-column
WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT id, ssn FROM staff) SELECT upper(ssn) FROM a
### 2
WITH RECURSIVE r AS (SELECT 1 AS n, ssn FROM staff UNION ALL SELECT n + 1, ssn FROM r WHERE n < 2) SELECT * FROM r
### masked-column
WITH RECURSIVE r(v) AS (SELECT 'a' UNION SELECT ssn FROM staff) SELECT v FROM r
### masked-column
SELECT id FROM directory WHERE number = 'SECRET-1'
### masked-column
SELECT upper(n) FROM over_directory
### masked-column
SELECT id FROM computed
### masked-column
SELECT id FROM over_computed
### masked-column
SELECT id FROM filtered
### none
SELECT 1 FROM rows_of
### masked-column
SELECT upper(kept_ssn) FROM kept
### masked-column
SELECT upper(note) FROM shown
### masked-column
SELECT upper(ssn) FROM retired
### masked-column
SELECT length(lower_ssn) FROM staff
### masked-column
SELECT code || '' FROM parts_1
### 1
SELECT s.ssn FROM (SELECT (SELECT ssn FROM staff LIMIT 1)) s
### 3
SELECT (jsonb_each(meta)).*, s.ssn FROM logs, staff s
### 5,6,8
SELECT * FROM jsonb_each('{"a": 1}'), staff
### unknown-column
SELECT a.nothing FROM staff a
### unknown-column
SELECT nothing FROM staff
### none
EXPLAIN SELECT ssn FROM staff
### none
EXPLAIN SELECT * FROM staff WHERE id = 1
### masked-column
EXPLAIN (VERBOSE) SELECT id FROM staff WHERE ssn = 'a'
### permission
SELECT most_common_vals FROM pg_stats WHERE tablename = 'staff'
### permission
SELECT stavalues1 FROM pg_statistic
### permission
SELECT * FROM pg_stats_ext
### function-not-allowed
SELECT query_to_xml('SELECT ssn FROM staff', true, true, '')
### function-not-allowed
SELECT * FROM ts_stat('SELECT to_tsvector(ssn) FROM staff')
### function-not-allowed
SELECT table_to_xml('staff', true, true, '')
### 5,6,8
SELECT * FROM json_each('{"a": 1}') j, staff
### none
SELECT 1 FROM json_each('{"a": 1}') j NATURAL JOIN staff
### none
SELECT t.a FROM (SELECT * FROM json_each('{"a": 1}') j, staff) AS t(a, b)
### 1
SELECT t.* FROM (SELECT (SELECT ssn FROM staff WHERE id = 1)) AS t
### 1
WITH RECURSIVE a AS (SELECT x FROM b), b AS (SELECT ssn AS x FROM staff) SELECT x FROM a
### 1
SELECT public.staff.ssn, staff.name FROM staff
### 3,4,6
SELECT public.staff.* FROM public.staff
### 1
SELECT "public" . /* a */ staff .ssn FROM staff
### none
SELECT"public".staff.id FROM"public"."staff"
### none
SELECT a.id FROM public.staff a, elsewhere.staff b WHERE a.id = b.id
### failed
SELECT public.staff.id FROM public.staff, elsewhere.staff
### none
SELECT staff.ssn FROM elsewhere.staff
### 3,4,6
TABLE ONLY staff
### 3,4,6
TABLE staff *
### 3,4,6
(TABLE staff) UNION ALL TABLE staff
### none
SELECT count(*) FROM staff *
### none
SELECT count(*) FROM ONLY (staff)
### unknown-column
SELECT id, ssn FROM staff AS s (a, b, c) TABLESAMPLE BERNOULLI (100) REPEATABLE (1)
### 2
SELECT a, c FROM ONLY staff AS s (a, b, c) TABLESAMPLE BERNOULLI (100) WHERE b = 'Ann'
### 1
SELECT s.ssn FROM staff s TABLESAMPLE BERNOULLI ((SELECT 100 FROM staff LIMIT 1)) JOIN logs ON true
### unknown-column
SELECT staff.ctid FROM staff
### unknown-column
SELECT xmin, id FROM staff
### none
SELECT id, name, count(*) FROM staff GROUP BY id ORDER BY id
### 3
SELECT s.id, s.name, s.ssn, s.boss, count(l.id) FROM staff s LEFT JOIN logs l ON l.staff_id = s.id GROUP BY s.id ORDER BY s.name
### none
SELECT s.name, s.id, count(l.id) FROM staff s LEFT JOIN logs l ON l.staff_id = s.id GROUP BY 2 HAVING s.boss IS NULL OR true ORDER BY s.id
### none
SELECT public.staff.name FROM staff GROUP BY public.staff.id ORDER BY 1
### 4
SELECT tenant, id, name, token FROM tenants GROUP BY tenant, id
### grouping
SELECT tenant, name FROM tenants GROUP BY tenant
### none
SELECT t.id, upper(t.name) FROM tenants t GROUP BY (t.id, t.tenant)
### unknown-function
SELECT id, tenant, props FROM tenants GROUP BY id, tenant
### grouping
SELECT id, name FROM staff GROUP BY ROLLUP (id)
### none
SELECT s.id, name FROM logs l JOIN staff s ON l.id = s.id GROUP BY s.id, l.text ORDER BY s.id
### none
SELECT staff.name, (SELECT max(l.text) FROM logs l WHERE l.staff_id = staff.id AND staff.boss IS NULL) FROM staff GROUP BY id ORDER BY id
### 1
SELECT "Se cret", "a.b" FROM "Odd ""Names"""
### 1
SELECT U&"Se\0020cret" FROM public.U&"Odd \0022Names\0022" o
### 1
SELECT U&"Se!0020cret" UESCAPE '!' FROM U&"Odd !0022Names!0022" UESCAPE '!' WHERE "a.b" = 1
### read-only
SELECT ssn FROM staff FOR SHARE
### 1
SELECT s.ssn FROM logs l JOIN LATERAL (SELECT * FROM staff WHERE id = l.staff_id) s ON true
### 2
SELECT l.id, s.ssn FROM logs l LEFT JOIN staff s ON s.id = -l.id
### 1
WITH staff AS (SELECT * FROM staff) SELECT ssn FROM staff
### failed
WITH staff AS (SELECT * FROM public.staff) SELECT ssn, public.staff.id FROM staff, public.staff
### none
WITH RECURSIVE staff AS (SELECT 1 AS id, 'open'::text AS ssn UNION ALL SELECT id + 1, ssn FROM staff WHERE id < 2) SELECT upper(ssn) FROM staff
### 4,5,7
SELECT * FROM (WITH staff AS (SELECT 1 AS one) SELECT * FROM staff) a, staff
### 1
SELECT (SELECT x.ssn FROM (WITH logs AS (SELECT * FROM staff) SELECT ssn FROM logs) x LIMIT 1), text FROM logs
### none
EXPLAIN TABLE staff
### masked-column
EXPLAIN SELECT id FROM staff WHERE ssn = 'SECRET-1'
### 1
SELECT CASE WHEN id = 1 THEN ssn END FROM staff
### masked-column
SELECT CASE WHEN ssn = 'x' THEN 1 END FROM staff
### masked-column
SELECT CASE WHEN id = 1 THEN ssn ELSE name END FROM staff
### masked-column
SELECT count(e) FROM (SELECT ssn AS e FROM staff) x
### none told
SELECT count(e) FROM (SELECT (SELECT ssn FROM staff LIMIT 1) AS e FROM logs) x
### none told
SELECT count(b) FROM (SELECT id, ssn FROM staff) x (a, b)
### none told
SELECT b IS NULL FROM (SELECT id, ssn FROM staff) x (a, b)
### none told
SELECT b::text FROM (SELECT id, ssn FROM staff) x (a, b)
### masked-column
SELECT max(b) FROM (SELECT id, ssn FROM staff) x (a, b)
### masked-column
SELECT b || 'x' FROM (SELECT id, ssn FROM staff) x (a, b) ORDER BY b
### masked-column
SELECT DISTINCT b FROM (SELECT id, ssn FROM staff) x (a, b)
### masked-column
SELECT id FROM logs WHERE text IN (SELECT b FROM (SELECT id, ssn FROM staff) x (a, b))
### none told
SELECT (SELECT b FROM (SELECT id, ssn FROM staff) x (a, b) LIMIT 1) IS NULL
### none told
SELECT array_agg(b) FROM (SELECT id, ssn FROM staff) x (a, b)
### 1 told
SELECT lag(b) OVER (ORDER BY a) FROM (SELECT id, ssn FROM staff) x (a, b)
### masked-column
SELECT (SELECT salary AS k FROM (SELECT id, pay AS salary FROM staff) x WHERE x.id = u.id), id FROM staff u ORDER BY k DESC
### masked-column
SELECT (SELECT pay AS k FROM staff x WHERE x.id = u.id), id FROM staff u ORDER BY k DESC
### masked-column
SELECT (SELECT ssn AS k FROM staff x WHERE x.id = o.staff_id), count(*) FROM logs o GROUP BY k
### masked-column
SELECT DISTINCT ON (k) (SELECT ssn AS k FROM staff x WHERE x.id = u.id), id FROM staff u
### none told
SELECT md5(s::text) FROM staff s
### masked-column
SELECT a = b FROM staff a, staff b
### none told
SELECT to_jsonb(s) ->> 'ssn' = 'SECRET-1' FROM staff s
### none told
SELECT r.ssn FROM staff s, jsonb_to_record(to_jsonb(s)) AS r (ssn text)
### none told
SELECT json_object_agg(id, s) FROM staff s
### none
SELECT upper(x.id::text) FROM (SELECT id, ssn FROM staff) x
### none
SELECT l.meta, to_jsonb(l) FROM logs l, staff
### none
SELECT string_agg(name, ',' ORDER BY name) FROM staff GROUP BY boss
### 1
SELECT total, n FROM summed
### none
SELECT sum(n) FROM summed
### masked-column
SELECT sum(total) FROM summed
### 2
SELECT * FROM nested
### 2,3
SELECT * FROM looked_up
### masked-column
SELECT count(*) FROM looked_up WHERE is_known
### 2
SELECT * FROM appended
### 1
SELECT * FROM from_join
### none
SELECT id FROM listed
### 2
SELECT * FROM listed
### masked-column
SELECT upper(ssn) FROM listed
### masked-column
SELECT id FROM over_filtered
### masked-column
SELECT id FROM has_filtered
### masked-column
SELECT id FROM sorted
### masked-column
SELECT * FROM grouped
### masked-column
SELECT id FROM ranked
### masked-column
SELECT id FROM joined_by
### masked-column
SELECT 1 FROM distinct_ones
### masked-column
SELECT 1 FROM united
### masked-column
SELECT id FROM unnested
### masked-column
SELECT b FROM recursed
### masked-column
SELECT attname FROM stats
### masked-column
SELECT attname FROM over_stats
### masked-column
SELECT computed.u FROM computed, staff
### none
SELECT json_populate_record(NULL::staff, '{"ssn": "a"}')
### masked-column
SELECT pg_typeof(ssn) FROM staff
### 1
SELECT s.ssn FROM (VALUES (1)) v (i) JOIN staff s ON s.id = v.i
### masked-column
VALUES ((SELECT s.b FROM (SELECT ssn AS b FROM staff) s LIMIT 1))
### 2
SELECT public.tenants.name, public.tenants.token, count(*) FROM public.tenants GROUP BY public.tenants.tenant, public.tenants.id ORDER BY 1
### 4
SELECT "public"."tenants".id, count(*), "public"."tenants"."name", "public"."tenants"."token" FROM tenants GROUP BY tenant, id ORDER BY id
### 3,4,6
SELECT s.*, count(l.id) FROM staff s LEFT JOIN logs l ON l.staff_id = s.id GROUP BY s.id ORDER BY s.id
### 3,4,6
SELECT * FROM staff GROUP BY id ORDER BY id
### 2
SELECT s.id AS one, s.ssn AS two, s.name FROM staff s GROUP BY one ORDER BY one
### none
SELECT s.id AS boss, count(*) FROM staff s GROUP BY s.id ORDER BY boss
### grouping
SELECT s.id AS boss, s.name FROM staff s GROUP BY boss
### none told
SELECT count(*) FROM (SELECT CASE WHEN id = 1 THEN ssn END AS m FROM staff) t WHERE t IS NULL
### none told
SELECT t::text FROM (SELECT CASE WHEN true THEN ssn ELSE 'x' END AS m FROM staff) t
### none told
SELECT row_to_json(t) ->> 'm' FROM staff s CROSS JOIN LATERAL (SELECT CASE WHEN true THEN s.ssn END AS m) t
### none
SELECT (s).id, upper((s).name) FROM staff s
### 1
SELECT (s).ssn FROM staff s
### masked-column
SELECT id FROM staff s WHERE (s).ssn LIKE 'S%'
### unknown-column
SELECT ctid, * FROM staff
### none
SELECT count(*) FROM staff
### none told
SELECT s FROM (SELECT id, name FROM staff) a JOIN staff s USING (id, name)
### none told
SELECT j FROM (staff JOIN (SELECT id AS other FROM logs) l ON other = id) AS j
### 1
SELECT c FROM (staff s JOIN (SELECT id AS other FROM logs) l ON other = id) AS j (a, b, c)
### none
SELECT public.logs.text FROM logs JOIN staff ON logs.staff_id = staff.id ORDER BY 1
### masked-column
SELECT ssn FROM staff TABLESAMPLE SYSTEM (50) REPEATABLE (1)
### 1
SELECT snap FROM archive
### masked-column
SELECT (snap).ssn FROM archive
### masked-column
SELECT to_jsonb(snap) FROM archive
### 1,2
SELECT snaps, deep FROM archive
### none
SELECT id FROM archive
### 1,2,3,4,5,6,7
SELECT one, ones, list, lists, inner_list, span, spans FROM contained
### masked-column
SELECT (one).ssn FROM contained
### masked-column
SELECT (inner_list[1]).items FROM contained
### masked-column
SELECT lower(span) FROM contained
### masked-column
SELECT id FROM contained ORDER BY lists
### none
SELECT id FROM contained
### masked-column
SELECT id FROM by_code
### masked-column
SELECT id FROM by_code_1
### masked-column
SELECT id FROM by_lower
### masked-column
SELECT id FROM over_by_code
### 2
SELECT id, code FROM by_listed
### masked-column
SELECT e::numeric FROM (SELECT id, pay FROM staff) x (i, e)
### masked-column
SELECT id FROM materialized_cast
### masked-column
SELECT id FROM appended_cast
### 2
SELECT * FROM cased
### permission
SELECT stavalues1 FROM pg_statistic
### masked-column
SELECT text FROM logs EXCEPT SELECT b FROM (SELECT id, ssn FROM staff) x (a, b)
### masked-column
SELECT ARRAY[b, 'x'::text] FROM (SELECT id, ssn FROM staff) x (a, b)
