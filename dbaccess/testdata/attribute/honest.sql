-- Statements on the objects of fixture.sql that call nothing but allowed functions. A case is a line "### ok" and the
-- statement below it, up to the next such line.
### ok
SELECT count(o.*) AS count FROM fx_customers c LEFT JOIN fx_orders o ON o.customer_id = c.customer_id AND o.status = 'void'
### ok
SELECT v.renamed, v.pg_sleep FROM fx_v_shadow v
### ok
WITH rank AS (SELECT order_id, row_number() OVER (PARTITION BY customer_id ORDER BY placed_on DESC) AS row_number FROM fx_orders) SELECT rank.order_id FROM rank WHERE rank.row_number = 1
### ok
SELECT r.sum, r.lag FROM ROWS FROM (generate_series(5, 6)) WITH ORDINALITY AS r(sum, lag) ORDER BY r.lag
### ok
SELECT b.addrs[1].city, (b.addrs[2]).zip FROM fx_boxed b
### ok
SELECT u.value, u.position FROM unnest(ARRAY['a', 'b', 'c']) WITH ORDINALITY AS u(value, "position") ORDER BY u.position DESC
### ok
SELECT p.sex, p.class, avg(p.survived) AS rate, avg(p.age) AS age FROM (VALUES ('m', 1, 0, 22), ('f', 1, 1, 30)) AS p(sex, class, survived, age) GROUP BY p.sex, p.class
### ok
SELECT e.kind, sum(e.hours) AS hours, count(*) AS count FROM fx_events e GROUP BY e.kind
### ok
SELECT f.title, m.key, m.value FROM fx_film f CROSS JOIN LATERAL (VALUES ('rank', f.rank), ('count', f.count), ('length', f.length)) AS m(key, value)
### ok
SELECT fx_customers.name, fx_orders.amount FROM fx_orders NATURAL JOIN fx_customers WHERE fx_customers.age > 30
### ok
SELECT k.type, count(*) AS count FROM (SELECT type FROM fx_customers) a JOIN (VALUES ('retail'), ('trade')) AS b(type) USING (type) AS k GROUP BY k.type
### ok
WITH RECURSIVE t(n, path) AS (SELECT 1, ARRAY[1] UNION ALL SELECT t.n + 1, t.path || (t.n + 1) FROM t WHERE t.n < 4) SELECT t.n, t.path FROM t
### ok
EXPLAIN SELECT t.total FROM (SELECT sum(amount) AS total FROM fx_orders) t WHERE t.total > 3
### ok
SELECT t.int4, t.bool, t.float8, t.uuid, t.json FROM (VALUES (1, true, 1.5, 'u', '{}')) AS t(int4, bool, float8, uuid, json)
### ok
SELECT unnest.unnest FROM unnest(ARRAY['a', 'b']) WHERE unnest.unnest <> 'a'
### ok
SELECT total.total, total.count FROM (SELECT sum(amount) AS total, count(*) AS count FROM fx_orders) AS total
### ok
SELECT o.pg_sleep, o.ts_stat FROM fx_orders AS o(pg_sleep, ts_stat)
### ok
SELECT CASE f.status WHEN 'ok' THEN f.key ELSE f.value::text END AS shown FROM fx_film f
### ok
SELECT s.currval, s.nextval, s.txid_current, s.pg_backend_pid FROM (VALUES (1, 2, 3, 4)) AS s(currval, nextval, txid_current, pg_backend_pid)
### ok
SELECT g.label FROM fx_grandchild g WHERE g.more = 'm' AND g.extra > 1
### ok
SELECT r.status FROM jsonb_to_record('{"status":"ok","count":3}') AS r(status text, count int) WHERE r.count > 2
### ok
SELECT (addr).city AS city, count(*) AS count FROM fx_boxed GROUP BY (addr).city
### ok
SELECT c.month, c.cohort, count(DISTINCT c.customer_id) AS size FROM (SELECT customer_id, date_trunc('month', placed_on) AS month, min(date_trunc('month', placed_on)) OVER (PARTITION BY customer_id) AS cohort FROM fx_orders) c GROUP BY c.month, c.cohort
### ok
WITH total AS (SELECT customer_id, sum(amount) AS total FROM fx_orders GROUP BY customer_id) SELECT c.name, total.total FROM fx_customers c LEFT JOIN total ON total.customer_id = c.customer_id
### ok
WITH t(name, total, last) AS (SELECT status, sum(amount), max(placed_on) FROM fx_orders GROUP BY status) SELECT t.name, t.total, t.last FROM t ORDER BY t.total
### ok
SELECT n.inet, n.host, n.network, n.family FROM (VALUES ('10.0.0.1', 'h', 'n', 4)) AS n(inet, host, network, family)
### ok
SELECT kv.key, count(kv.value) AS count FROM jsonb_each_text('{"a": 1, "b": 2}') AS kv GROUP BY kv.key
### ok
SELECT b.qty[1] AS first, b.words[1] AS word, b.cfg['k'] AS k FROM fx_boxed b
### ok
SELECT date.month, sum(date.amount) AS sum FROM (SELECT extract(month FROM placed_on) AS month, amount FROM fx_orders) AS date GROUP BY date.month
### ok
UPDATE fx_target t SET v = s.name, n = s.rank FROM (SELECT customer_id, name, rank() OVER (ORDER BY age) AS rank FROM fx_customers) s WHERE s.customer_id = t.k
### ok
SELECT (d.o).status, (d.o).amount FROM fx_docs d
### ok
SELECT (x.r).name, (x.r).age FROM (SELECT c AS r FROM fx_customers c) x
### ok
UPDATE fx_target SET addr.city = 'Faro', v = (SELECT m.max FROM (SELECT max(status) FROM fx_orders) m) WHERE fx_target.k = 2
### ok
SELECT v.customer_id, v.count, v.total, v.date FROM fx_v_totals v
### ok
SELECT q.placed_on, q.text, q.interval FROM (SELECT placed_on::text, 'x'::text, interval '1 day' FROM fx_orders) q
### ok
SELECT name.name FROM unnest(ARRAY['Ana', 'Bo']) AS name
### ok
MERGE INTO fx_target t USING (SELECT order_id AS key, status AS value, 1 AS count FROM fx_orders) s ON t.k = s.key WHEN MATCHED AND s.value <> 'void' THEN UPDATE SET v = s.value, n = s.count WHEN NOT MATCHED THEN INSERT (k, v, n) VALUES (s.key, s.value, s.count)
### ok
WITH RECURSIVE g(id) AS (SELECT 1 UNION ALL SELECT (g.id % 3) + 1 FROM g) CYCLE id SET cycle USING path SELECT g.id, g.cycle, g.path FROM g
### ok
SELECT f.money * 2 AS double_money, f.abs, f.sign, f.power, f.floor FROM fx_film f
### ok
SELECT k.date, k.numeric FROM (SELECT date '2024-01-01', '1.5'::numeric) k
### ok
UPDATE fx_target AS u SET n = u.n + 1 WHERE u.k = 1 RETURNING u.k, u.n AS total
### ok
SELECT q."Full Name", q."Total", q."Rank" FROM (SELECT name AS "Full Name", age AS "Total", position AS "Rank" FROM fx_customers) q
### ok
WITH snapshot(pg_stat_get_activity, pg_cancel_backend, query) AS (VALUES (1, 2, 'select')) SELECT snapshot.query FROM snapshot WHERE snapshot.pg_cancel_backend = 2 AND snapshot.pg_stat_get_activity = 1
### ok
SELECT generate_series.generate_series AS n FROM generate_series(1, 3)
### ok
SELECT s.id FROM fx_shadow s WHERE s.pg_cancel_backend = 0 AND s.ts_stat <> ''
### ok
SELECT month.month FROM generate_series(1, 12) AS month WHERE month.month % 3 = 0
### ok
SELECT q.größe, q.été FROM (SELECT 1 AS größe, 2 AS été) AS q
### ok
SELECT b.id FROM fx_boxed b WHERE (b.addr).city <> '' ORDER BY (b.addr).street
### ok
SELECT s.sum, s.count FROM (SELECT count(*) AS count, sum(amount) AS sum FROM fx_orders) AS s(sum, count)
### ok
SELECT log.log, log.path, log.status FROM (SELECT log, path, status FROM fx_film) AS log
### ok
SELECT r.name, r.price, r.type FROM json_to_recordset('[{"name":"a","price":2,"type":"t"}]') AS r(name text, price numeric, type text)
### ok
SELECT count.count FROM (SELECT count(*) AS count FROM fx_orders) AS count
### ok
SELECT u.key, u.value FROM unnest(ARRAY['k1', 'k2'], ARRAY[1, 2]) AS u(key, value)
### ok
SELECT u.name, u.count FROM (SELECT 'a' AS name, 1 AS count UNION ALL SELECT 'b', 2) AS u
### ok
SELECT s.value FROM string_to_table('a,b,c', ',') AS s(value) WHERE s.value <> 'b'
### ok
WITH RECURSIVE t(id, parent) AS (SELECT 1, 0 UNION ALL SELECT t.id + 1, t.id FROM t WHERE t.id < 3) SEARCH DEPTH FIRST BY id SET path SELECT t.id, t.parent FROM t ORDER BY t.path
### ok
SELECT g.status, g.type, sum(g.amount) AS sum FROM (SELECT o.status, c.type, o.amount FROM fx_orders o JOIN fx_customers c ON c.customer_id = o.customer_id) g GROUP BY GROUPING SETS ((g.status), (g.type), ())
### ok
WITH s AS MATERIALIZED (SELECT type, count(*) FROM fx_customers GROUP BY type) SELECT s.type, s.count FROM s
### ok
SELECT f.mode, avg(f.value) AS avg FROM fx_film f GROUP BY f.mode HAVING avg(f.value) > 1 AND min(f.total) > 10
### ok
SELECT f.title, sum(f.sum) OVER (PARTITION BY f.year ORDER BY f.month ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running FROM fx_film f
### ok
SELECT o.order_id, m.format FROM fx_orders o JOIN (VALUES ('open', 'O'), ('paid', 'P')) AS m(status, format) ON m.status = o.status
### ok
WITH RECURSIVE tree AS (SELECT c.customer_id, c.name, 0 AS level FROM fx_customers c WHERE c.position = 1 UNION ALL SELECT c.customer_id, c.name, tree.level + 1 FROM fx_customers c JOIN tree ON c.position = tree.customer_id + 1) SELECT tree.name, tree.level FROM tree ORDER BY tree.level
### ok
SELECT t.name, t.milliseconds, t.bytes FROM (VALUES ('Song', 1000, 20), ('Air', 900, 10)) AS t(name, milliseconds, bytes) ORDER BY t.bytes DESC
### ok
SELECT m.date, sum(m.money) AS money FROM fx_mv_orders m GROUP BY m.date
### ok
SELECT c.id, c.full_name FROM fx_customers AS c(id, full_name, land)
### ok
INSERT INTO fx_target (k, v, n) SELECT s.id + 1000, s.name, s.count FROM (SELECT customer_id AS id, name, 1 AS count FROM fx_customers) s
### ok
SELECT g.age FROM generate_series(1, 5) AS g(age) WHERE g.age > 2
### ok
SELECT a.name, b.name AS peer FROM fx_customers a JOIN fx_customers b ON a.type = b.type AND a.position < b.position
### ok
SELECT od.product, sum(od.quantity * od.price * (1 - od.discount)) AS revenue FROM (VALUES ('Chai', 2, 18.0, 0.1), ('Chang', 1, 19.0, 0)) AS od(product, quantity, price, discount) GROUP BY od.product
### ok
SELECT item.value ->> 'price' AS price FROM jsonb_array_elements('[{"price": 3}]') AS item
### ok
SELECT count(*) FILTER (WHERE f.lock) AS locked, count(*) FILTER (WHERE f.notify) AS notified, sum(f.sleep) AS sleep FROM fx_film f
### ok
SELECT c.key, c.age, c.type FROM fx_customers AS c(key) WHERE c.age > 30
### ok
SELECT c.name FROM fx_customers c WHERE c.age BETWEEN 20 AND 40 AND c.country <> 'US'
### ok
SELECT d.date::date AS day, coalesce(sum(o.amount), 0) AS sum FROM generate_series(timestamp '2024-01-01', '2024-01-31', '1 day') AS d(date) LEFT JOIN fx_orders o ON o.placed_on = d.date GROUP BY d.date
### ok
SELECT q.row_number, q.name FROM (SELECT row_number() OVER (ORDER BY age), name FROM fx_customers) q ORDER BY q.row_number
### ok
SELECT point.x, point.y, point.box FROM (SELECT 1.5 AS x, 2.5 AS y, 'b' AS box) AS point
### ok
SELECT d.date_trunc, d.count FROM (SELECT date_trunc('month', placed_on), count(*) FROM fx_orders GROUP BY 1) d ORDER BY d.date_trunc
### ok
SELECT c.pg_sleep, c.fx_any, c.more FROM fx_shadow_child c
### ok
SELECT age.age, age.name FROM (SELECT name, age FROM fx_customers) AS age WHERE age.age > 30
### ok
SELECT e.key, e.value FROM fx_boxed b, jsonb_each(b.cfg) AS e
### ok
SELECT s.id, s.pg_sleep, s.nextval FROM fx_shadow s
### ok
DELETE FROM fx_target t USING (VALUES (1, 'one')) AS d(key, value) WHERE t.k = d.key AND t.v = d.value RETURNING t.k
### ok
SELECT d.id, d.v FROM fx_dropped d
### ok
SELECT year.year, count(f.film_id) AS films FROM generate_series(2005, 2008) AS year LEFT JOIN fx_film f ON f.year = year.year GROUP BY year.year ORDER BY year.year
### ok
SELECT s.pg_sleep FROM generate_series(1, 3) AS s(pg_sleep)
### ok
SELECT DISTINCT ON (f.user) f.user, f.path, f.hash FROM fx_film f ORDER BY f.user, f.count DESC
### ok
SELECT l.l_returnflag, sum(l.l_quantity) AS sum_qty, avg(l.l_discount) AS avg_disc FROM (VALUES ('A', 3, 0.1), ('N', 5, 0.2)) AS l(l_returnflag, l_quantity, l_discount) GROUP BY l.l_returnflag HAVING sum(l.l_quantity) > 1
### ok
SELECT q."case", q.lower FROM (SELECT CASE WHEN age > 30 THEN 'older' ELSE 'younger' END, lower(name) FROM fx_customers) q
### ok
SELECT length.length, length.title FROM fx_film AS length
### ok
SELECT p.title, p.percent_rank, p.ntile FROM (SELECT title, percent_rank() OVER (ORDER BY length) AS percent_rank, ntile(4) OVER (ORDER BY length) AS ntile FROM fx_film) p WHERE p.ntile = 1
### ok
SELECT a.city, a.path FROM fx_boxed b, unnest(b.addrs) AS a(path, city, money)
### ok
SELECT c.id, c.label, c.extra FROM fx_child c
### ok
SELECT o.order_id FROM fx_orders o ORDER BY o.amount LIMIT (SELECT t.count FROM (SELECT 2 AS count) t) OFFSET (SELECT t.mod FROM (SELECT 1 AS mod) t)
### ok
SELECT ju.customer_id, o.amount FROM fx_orders o JOIN fx_customers c USING (customer_id) AS ju
### ok
SELECT t.* FROM (SELECT o.*, row_number() OVER (PARTITION BY o.status ORDER BY o.amount DESC) AS rn FROM fx_orders o) t WHERE t.rn <= 1
### ok
SELECT t.name FROM (SELECT name, customer_id FROM fx_customers) t WHERE t.customer_id IN (SELECT t.customer_id FROM fx_orders t WHERE t.status = 'paid')
### ok
SELECT f.name, f.type, f."position", f.email FROM fx_customers f
### ok
WITH fx_orders AS (SELECT 'x' AS name, 2 AS log) SELECT fx_orders.name, fx_orders.log FROM fx_orders
### ok
SELECT b.label FROM ONLY fx_base b
### ok
SELECT l.lock, l.listen, l.notify, l.cancel, l.sleep FROM (SELECT true AS lock, 1 AS listen, 2 AS notify, 3 AS cancel, 4 AS sleep) l
### ok
SELECT p.full_name, p.age FROM fx_people p WHERE p.age > 30
### ok
SELECT f.title FROM fx_film f ORDER BY f.random, f.now DESC NULLS LAST, f.bit
### ok
SELECT g.value, g.rank FROM generate_series(10, 30, 10) WITH ORDINALITY AS g(value, rank)
### ok
SELECT a.net, b.tax FROM fx_orders o, LATERAL (SELECT o.amount * 0.8 AS net) a, LATERAL (SELECT a.net * 0.2 AS tax) b
### ok
SELECT v.version, v.column2 FROM (VALUES (1, 'a'), (2, 'b')) AS v(version) ORDER BY v.version
### ok
SELECT f.film_id FROM fx_film f WHERE f.date >= date '2006-01-01' AND f.timestamp < timestamp '2008-01-01' AND f.time > time '09:00'
### ok
SELECT F.Title, f.LENGTH, F.Version FROM fx_film AS f
### ok
SELECT (fx_boxed.addr).* FROM fx_boxed
### ok
SELECT c.name, v.total FROM fx_customers c JOIN fx_v_totals v ON v.customer_id = c.customer_id AND v.count > 1
### ok
SELECT s.count, s.sum FROM (SELECT count(*), sum(amount) FROM fx_orders) AS s
### ok
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f.length) AS median, mode() WITHIN GROUP (ORDER BY f.format) AS format FROM fx_film f
### ok
WITH f AS (SELECT * FROM fx_film) SELECT f.length, f.date, f.version FROM f
### ok
SELECT d.extract, d.coalesce FROM (SELECT extract(year FROM placed_on), coalesce(note, 'none') FROM fx_orders) d
### ok
SELECT m.abs, m.exp, m.ln, m.mod, m.div, m.floor, m.ceil, m.round FROM (VALUES (1, 2, 3, 4, 5, 6, 7, 8)) AS m(abs, exp, ln, mod, div, floor, ceil, round)
### ok
SELECT l.placed_on, l.amount - l.lag AS change, l.first_value FROM (SELECT placed_on, amount, lag(amount) OVER w AS lag, first_value(amount) OVER w AS first_value FROM fx_orders WINDOW w AS (ORDER BY placed_on)) l
### ok
SELECT t.text FROM unnest(ARRAY['x', 'y']) AS t(text) WHERE t.text LIKE 'x%'
### ok
SELECT q.name FROM (SELECT CASE WHEN age < 30 THEN upper(name) ELSE name END FROM fx_customers) q
### ok
SELECT t.status, t.amount FROM fx_orders AS t TABLESAMPLE BERNOULLI (50) REPEATABLE (3)
### ok
SELECT v.column1, v.column2 FROM (VALUES (1, 'a'), (2, 'b')) AS v WHERE v.column1 > 1
### ok
SELECT (b.addr).city, (b.addr).zip FROM fx_boxed b
### ok
SELECT x.rank, x.value FROM XMLTABLE('/r/i' PASSING XMLPARSE(DOCUMENT '<r><i>a</i><i>b</i></r>') COLUMNS rank FOR ORDINALITY, value text PATH '.') AS x ORDER BY x.rank
### ok
SELECT string_agg(f.key, ', ' ORDER BY f.rank) AS keys FROM fx_film f
### ok
SELECT o.order_id, o.amount FROM fx_orders o WHERE o.amount > (SELECT avg(i.amount) FROM fx_orders i WHERE i.customer_id = o.customer_id)
### ok
SELECT f.title, f.length, f.rating, f.year FROM fx_film f
### ok
WITH t(key) AS (SELECT status, amount AS value FROM fx_orders) SELECT t.key, t.value FROM t
### ok
SELECT x.name, x.price FROM XMLTABLE('/r/i' PASSING XMLPARSE(DOCUMENT '<r><i name="a"><price>3</price></i></r>') COLUMNS name text PATH '@name', price numeric PATH 'price') AS x
### ok
SELECT d.now, d.age, d.timezone, d.to_char FROM (SELECT 1 AS now, 2 AS age, 'UTC' AS timezone, to_char(date '2024-01-01', 'YYYY') AS to_char) d
### ok
SELECT a.array_agg, a.cardinality FROM (SELECT array_agg(o.order_id ORDER BY o.order_id), count(*) AS cardinality FROM fx_orders o) a
### ok
SELECT x.name AS label FROM fx_customers x UNION ALL SELECT x.title FROM fx_film x UNION ALL SELECT x.text FROM (VALUES ('z')) AS x(text)
### ok
SELECT (b.home).street FROM fx_boxed b
### ok
SELECT j.id, j.total FROM (fx_base b JOIN (SELECT 1 AS id, 5 AS n) q USING (id)) AS j(id, name, total)
### ok
WITH fx_film AS (SELECT fx_film.title, fx_film.length AS length FROM fx_film WHERE fx_film.rank < 9) SELECT fx_film.title, fx_film.length FROM fx_film
### ok
SELECT s.date, s.value, avg(s.value) OVER w AS avg FROM (SELECT placed_on AS date, amount AS value FROM fx_orders) s WINDOW w AS (ORDER BY s.date ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
### ok
WITH x AS (SELECT o.*, c.name, c.age FROM fx_orders o JOIN fx_customers c USING (customer_id)) SELECT x.name, x.age, x.status FROM x
### ok
SELECT p."Title", p."Score", u."DisplayName", u."Age" FROM (VALUES (1, 'How?', 5)) AS p("OwnerUserId", "Title", "Score") JOIN (VALUES (1, 'Ana', 30)) AS u("Id", "DisplayName", "Age") ON u."Id" = p."OwnerUserId"
### ok
SELECT c.name, (SELECT count(*) FROM fx_orders o WHERE EXISTS (SELECT 1 FROM fx_film f WHERE f.rank = c.position AND o.order_id = f.film_id)) AS count FROM fx_customers c
### ok
SELECT v.name, v.age FROM (VALUES ('Ana', 31), ('Bo', 44)) AS v(name, age)
### ok
SELECT "user".name FROM (SELECT name, type FROM fx_customers) AS "user" WHERE "user".type = 'retail'
### ok
SELECT u.type, u.value FROM (SELECT status AS type, amount AS value FROM fx_orders UNION SELECT type, age FROM fx_customers) u ORDER BY u.type, u.value
### ok
SELECT x.status, x.max FROM (SELECT status, max(amount) FROM fx_orders GROUP BY status) x WHERE x.max > 10
### ok
SELECT max(s.lo_get), min(s.fx_int) FROM fx_shadow s
### ok
SELECT m.length, m.left, m.right, m.format, m.md5 FROM (SELECT length(title) AS length, left(title, 2) AS left, right(title, 2) AS right, format, md5 FROM fx_film) m WHERE m.length > 3
### ok
SELECT o.* FROM fx_orders o WHERE o.amount > 5
### ok
SELECT f.title FROM fx_film f WHERE f.uuid IN (SELECT g.uuid FROM fx_film g WHERE g.version = 'v1')
### ok
SELECT DISTINCT hash.md5, hash.hash FROM (SELECT md5, hash FROM fx_film) AS hash
### ok
SELECT f.rating, f.format, sum(f.count) AS count, max(f.rank) AS rank FROM fx_film f GROUP BY f.rating, f.format
### ok
SELECT date.date, date."interval" FROM fx_film AS date
### ok
SELECT c.name FROM fx_customers c WHERE EXISTS (SELECT 1 FROM fx_orders o WHERE o.customer_id = c.customer_id AND o.status = 'paid')
### ok
SELECT j.json_agg, j.jsonb FROM (SELECT json_agg(o.status), '{}' AS jsonb FROM fx_orders o) j
### ok
WITH RECURSIVE cal AS (SELECT date '2024-01-01' AS date UNION ALL SELECT (cal.date + 1)::date FROM cal WHERE cal.date < date '2024-01-05') SELECT cal.date FROM cal WHERE extract(dow FROM cal.date) <> 0
### ok
EXPLAIN (COSTS OFF) WITH r AS (SELECT age AS rank FROM fx_customers) SELECT r.rank FROM r
### ok
SELECT a.street, a.city, a.zip FROM fx_boxed b CROSS JOIN LATERAL unnest(b.addrs) AS a
### ok
SELECT rank.name, rank.rank FROM (SELECT name, rank() OVER (ORDER BY age) AS rank FROM fx_customers) AS rank ORDER BY rank.rank
### ok
SELECT coalesce(a.date, b.date) AS date, a.value, b.value AS value2 FROM (SELECT placed_on AS date, amount AS value FROM fx_orders) a FULL JOIN (SELECT happened_on AS date, hours AS value FROM fx_events) b ON a.date = b.date
### ok
SELECT f.left, f.right, f.lower, f.upper, f.replace, f.reverse FROM fx_film f
### ok
SELECT "T"."name", "T"."timestamp", "T"."order" FROM (SELECT 'a' AS name, now() AS "timestamp", 1 AS "order") AS "T"
### ok
SELECT fx_film.text, fx_film."char", fx_film.point, fx_film.box FROM fx_film
### ok
SELECT (SELECT max(x.age) FROM fx_customers x) AS age, (SELECT max(x.length) FROM fx_film x) AS length, (SELECT sum(x.total) FROM fx_v_totals x) AS total
### ok
SELECT t.total, t.status FROM (SELECT o.status, sum(o.amount) AS total FROM fx_orders o GROUP BY o.status) t ORDER BY t.total DESC
### ok
INSERT INTO fx_target AS t (k, v, n) VALUES (1, 'new', 5) ON CONFLICT (k) DO UPDATE SET v = excluded.v, n = t.n + excluded.n WHERE t.v IS DISTINCT FROM excluded.v
### ok
SELECT j.name, j.amount, j.status FROM (fx_orders o JOIN fx_customers c USING (customer_id)) AS j
### ok
SELECT version.version, f.title FROM fx_film f JOIN (SELECT DISTINCT version, film_id FROM fx_film) AS version ON version.film_id = f.film_id
### ok
SELECT ranked.title, ranked.dense_rank FROM (SELECT f.title, dense_rank() OVER (PARTITION BY f.rating ORDER BY f.length DESC) FROM fx_film f) ranked WHERE ranked.dense_rank = 1
### ok
SELECT c.name, ARRAY(SELECT o.amount FROM fx_orders o WHERE o.customer_id = c.customer_id ORDER BY o.placed_on) AS amounts FROM fx_customers c
### ok
WITH a AS (SELECT placed_on AS date, amount AS value FROM fx_orders), b AS (SELECT a.date, sum(a.value) OVER (ORDER BY a.date) AS sum FROM a) SELECT b.date, b.sum FROM b ORDER BY b.date
### ok
SELECT public.fx_film.title, public.fx_film.timestamp FROM public.fx_film
### ok
VALUES ((SELECT t.count FROM (SELECT count(*) FROM fx_orders) t), (SELECT max(f.year) FROM fx_film f))
### ok
SELECT c.name, last.date, last.status FROM fx_customers c LEFT JOIN LATERAL (SELECT o.placed_on AS date, o.status FROM fx_orders o WHERE o.customer_id = c.customer_id ORDER BY o.placed_on DESC LIMIT 1) last ON true
### ok
SELECT w.word, count(*) AS count FROM fx_orders o, regexp_split_to_table(o.note, ' ') AS w(word) GROUP BY w.word
### ok
SELECT r.name, r.total FROM ROWS FROM (unnest(ARRAY['x', 'y']), generate_series(1, 2)) AS r(name, total)
### ok
SELECT r.name, r.rank FROM (SELECT name, rank() OVER (ORDER BY age DESC) AS rank FROM fx_customers) r WHERE r.rank <= 2
### ok
SELECT e.happened_on, e.kind FROM fx_events_2024 e ORDER BY e.happened_on
### ok
SELECT day.day, date.date FROM generate_series(timestamp '2024-01-01', '2024-01-03', '1 day') AS day, generate_series(1, 2) AS date
### ok
WITH fx_orders AS (SELECT 1 AS pg_sleep) SELECT fx_orders.pg_sleep FROM fx_orders
### ok
INSERT INTO fx_target (k, v) VALUES (1101, 'r') RETURNING fx_target.k, fx_target.v
### ok
SELECT m."Full Name" FROM "fx_Mixed Case" m WHERE m.id = 1
### ok
SELECT p.year, p.open, p.paid FROM (SELECT extract(year FROM placed_on) AS year, sum(amount) FILTER (WHERE status = 'open') AS open, sum(amount) FILTER (WHERE status = 'paid') AS paid FROM fx_orders GROUP BY 1) p
### ok
SELECT n.value FROM fx_boxed b, jsonb_array_elements(b.cfg -> 'n') AS n
