-- Statements on the database of fixture.sql, with the functions of path_test.go listed. "same" runs and gives
-- what PostgreSQL gives for this text on the login's own search path. "refused" is refused, or PostgreSQL finds no name.
-- "uncalled" is either, or PostgreSQL reads it as syntax: which, depends on its version.
### same
SELECT id, name, feels FROM people ORDER BY id
### same
SELECT people.id, people.* FROM people ORDER BY people.id
### same
SELECT public.people.id FROM people ORDER BY 1
### same
SELECT p FROM people p ORDER BY id
### same
SELECT (home).street, (p.home).number, (p).name FROM people p ORDER BY id
### same
SELECT * FROM happy_people
### same
SELECT "or der", o."or der" + 1 FROM "Odd name" o
### same
SELECT "Odd name"."or der" FROM ONLY ("Odd name")
### same
SELECT count(*) FROM U&"p\0065ople"
### same
SELECT count(*) FROM /* people */ people -- people
 , ONLY people b, people * c
### same
WITH people AS (SELECT 1 AS id) SELECT * FROM people
### same
WITH p AS (SELECT * FROM people) SELECT people.id, p.id FROM people JOIN p USING (id) ORDER BY 1
### same
SELECT 'happy'::mood, CAST('sad' AS mood), mood 'sad', 'happy' :: "mood", ARRAY['sad']::mood[], '{sad}'::mood[]
### same
SELECT mood('happy'), amount('3'), '7'::amount, '(High,1)'::place, (ROW('a', 1)::place).street
### same
SELECT id FROM people WHERE feels > 'sad' AND pays BETWEEN 1 AND 6
### same
SELECT feels, sum(pays), max(feels) FROM people GROUP BY feels ORDER BY feels
### same
SELECT id FROM people WHERE email = 'ANN@X.ORG'
### same
SELECT id FROM people WHERE email IN ('ANN@X.ORG', 'none')
### same
SELECT id FROM people WHERE email LIKE 'ANN%' OR email <> 'BOB@x.org'
### same
SELECT CASE email WHEN 'ANN@X.ORG' THEN 1 ELSE 2 END, NULLIF(email, 'BOB@X.ORG'), email IS DISTINCT FROM 'ANN@X.ORG' FROM people ORDER BY id
### same
SELECT a.id FROM people a JOIN people b USING (email) ORDER BY 1
### same
SELECT id FROM people WHERE 'B' = ANY (emails) ORDER BY 1
### same
SELECT count(*) FROM people a NATURAL JOIN (SELECT email FROM people) b
### same
SELECT replace(email, 'ANN', 'x'), split_part(email, 'X', 1), max(email), strpos(email, 'ANN') FROM people GROUP BY email ORDER BY 1
### same
SELECT 'a'::citext = 'A', 'a'::public.citext = 'A', 'a' = 'A'
### same
SELECT x = 'A' FROM (SELECT 'a'::citext AS x) s
### same
SELECT tags -> 'a', tags ? 'a', tags || 'c=>3', akeys(tags), (tags - 'a'::text)::text FROM people ORDER BY id
### same
SELECT id FROM people WHERE tags @> 'a=>1'
### same
SELECT name % 'Anne', name <-> 'Anne', similarity(name, 'Anne'), 7 % 4 FROM people ORDER BY id
### same
SELECT 7 % 4, 'a' || 'b', 2 <> 3, 'a' ~~ 'a%'
### same
SELECT counted(), public.counted(), counted_with_path(), plain(id) FROM people ORDER BY id
### same
SELECT n FROM counts
### same
SELECT plain(p.id) + plain(1) FROM people p, happy_people h ORDER BY 1
### same
SELECT 'people'::regclass, to_regclass('people') IS NULL, pg_relation_size('people') > 0, 'mood'::regtype::text
### same
SELECT DISTINCT tableoid::regclass FROM people
### same
SELECT pg_get_viewdef('happy_people'::regclass), format_type('mood'::regtype, NULL)
### same
SELECT relname FROM pg_class WHERE pg_table_is_visible(oid) AND oid = 'people'::regclass
### same
SELECT column_name FROM information_schema.columns WHERE table_name = 'people' ORDER BY 1
### same
SELECT current_schema(), current_schema, current_schemas(false)
### same
SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() ORDER BY 1
### same
SELECT count(*) FROM pg_tables WHERE schemaname = current_schema
### same
SELECT r, r::text = 'people', concat(r), to_jsonb(r), n FROM names
### same
SELECT coalesce(r, 'people'), lag(r, 1, 'people') OVER () FROM names
### same
SELECT * FROM viewed_names
### same
SELECT DISTINCT t FROM table_names
### same
SELECT quote_literal(name), 'x' || name, name || 1 FROM people ORDER BY id
### same
SELECT to_json(p.home), to_json(p.feels) FROM people p ORDER BY id
### same
SELECT has_table_privilege('people', 'SELECT')
### same
SELECT to_tsvector('plain_words', 'The Words'), to_tsvector('english', 'The Words'), to_tsvector('x')
### same
SELECT name FROM people ORDER BY name COLLATE by_bytes, name COLLATE "C"
### same
SELECT * FROM json_to_recordset('[{"feels": "sad", "pays": 2}]') AS r (feels mood, pays amount)
### same
SELECT * FROM jsonb_populate_record(NULL::place, '{"street": "a"}')
### same
SELECT row_to_json(p), to_jsonb(p.home) FROM people p ORDER BY id
### same
SELECT * FROM people TABLESAMPLE bernoulli (100) ORDER BY id
### same
SELECT count(*) FROM people p, LATERAL (SELECT 1 FROM people q WHERE q.id = p.id) s
### same
SELECT id FROM people UNION SELECT id FROM "Odd name" EXCEPT SELECT id FROM happy_people ORDER BY 1
### same
SELECT (SELECT max(id) FROM people), EXISTS (SELECT FROM people WHERE id = 9), ARRAY(SELECT id FROM people ORDER BY id)
### same
WITH RECURSIVE t AS (SELECT min(id) AS n FROM people UNION ALL SELECT n + 1 FROM t WHERE n < (SELECT max(id) FROM people)) SELECT * FROM t
### same
SELECT id, rank() OVER (PARTITION BY feels ORDER BY pays) FROM people ORDER BY id
### same
SELECT 'é', name, '→' || feels::text FROM people WHERE name <> 'é' ORDER BY id
### same
SELECT 8 >> 1, id FROM people ORDER BY id
### refused
SELECT 8 >> 1, email = 'A' FROM people
### refused
SELECT p.leak FROM people p
### refused
SELECT (p).leak FROM people p
### refused
SELECT people.leak_any FROM people
### refused
SELECT ('(a,1)'::place).leak_any
### refused
SELECT p.leak, email = 'A' FROM people p
### refused
SELECT p.leak, 'people'::regclass FROM people p
### refused
SELECT p.leak, counted() FROM people p
### refused
SELECT leak(p) FROM people p
### uncalled
SELECT json_array(1, 2)
### uncalled
SELECT json_array(1), 'people'::regclass
### uncalled
SELECT json_array(1, 2), email = 'A' FROM people
### uncalled
SELECT json_object(1)
### uncalled
SELECT json_object(1), 'people'::regclass
### uncalled
SELECT json_arrayagg(id) FROM people
### uncalled
SELECT json_arrayagg(id), counted() FROM people
### refused
SELECT json_scalar(1)
### refused
SELECT json_serialize(1)
### refused
SELECT public.json_array(1)
### refused
SELECT 'a'::text === 'b'::text
### refused
SELECT 'a'::text OPERATOR(public.===) 'b'::text
### refused
SELECT c::text FROM purses
### refused
SELECT list::text[] FROM purses
### refused
SELECT (list[1])::text FROM purses
### refused
SELECT upper(list[1]) FROM purses
### refused
SELECT string_agg(list[1], ',') FROM purses
### refused
SELECT u::text FROM purses, unnest(list) u
### refused
SELECT d::text FROM purses
### refused
SELECT ((p).c)::text FROM purses
### refused
SELECT (ps[1]).c || 'x' FROM purses
### refused
SELECT lower(r)::text FROM purses
### refused
SELECT upper((ps[1].list)[1]) FROM boxes
### refused
SELECT upper(list[1]) FROM lists
### refused
SELECT 'cent'::coin::text
### refused
SELECT upper(('{cent}'::coin[])[1])
### refused
SELECT * FROM of_case
### refused
SELECT * FROM of_nullif
### refused
SELECT * FROM of_distinct
### refused
SELECT * FROM of_using
### refused
SELECT * FROM of_natural
### refused
SELECT * FROM of_in
### refused
SELECT * FROM of_any
### refused
SELECT * FROM of_cast
### refused
SELECT * FROM of_array
### refused
SELECT * FROM over_case
### refused
SELECT * FROM of_domain
### refused
SELECT * FROM watched
### refused
SELECT 'a'::graded
### same
SELECT * FROM ":funcid 1"
### same
SELECT id FROM grades
### refused
SELECT lag(m, 1, 'x') OVER (ORDER BY id) FROM letters
### refused
SELECT array_agg(m) = '{x}' FROM letters
### refused
SELECT array_append(array_agg(m), 'x') FROM letters
### refused
SELECT array_replace(ARRAY[m], 'x', 'y') FROM letters
### refused
SELECT ARRAY[m] = '{x}' FROM letters
### refused
SELECT ARRAY(SELECT m FROM letters) || '{x}'
### refused
SELECT ms @> '{x}' FROM lists_of_mail
### refused
SELECT coalesce(ms, '{x}') FROM lists_of_mail
### refused
SELECT CASE WHEN id > 1 THEN ms ELSE '{x}' END FROM lists_of_mail
### refused
SELECT ms FROM lists_of_mail UNION SELECT '{x}'
### refused
SELECT l = '(1,x)' FROM letters l
### refused
SELECT letters = '(1,x)' FROM letters
### refused
SELECT public.letters = '(1,x)' FROM letters
### refused
SELECT c = '(x,1)' FROM contacts
### refused
SELECT jsonb_populate_record(l, '{"m": "x"}') FROM letters l
### refused
SELECT populate_record(l, 'm=>x') FROM letters l
### refused
SELECT l #= 'm=>x' FROM letters l
### refused
SELECT 'x'::mail
### same
SELECT id, m, m || 'x', upper(m) FROM letters WHERE m <> 'x' ORDER BY id
### same
SELECT count(*), max(m), string_agg(m, ',' ORDER BY id) FROM letters
### same
SELECT coalesce(m, 'x'), CASE WHEN id > 1 THEN m ELSE 'x' END, NULLIF(m, 'a') FROM letters ORDER BY id
### same
SELECT letters.m, l.m FROM letters JOIN letters l USING (id) WHERE l.m IN ('a', 'x')
### refused
SELECT 'x' || e FROM of_explicit
### refused
SELECT e || 'x' FROM of_explicit
### refused
SELECT quote_literal(e) FROM of_explicit
### refused
SELECT quote_nullable(es[1]) FROM of_explicit
### refused
SELECT (e).quote_literal FROM of_explicit
### refused
SELECT d || 'x' FROM of_explicit
### refused
SELECT 'a'::text::over_explicit
### refused
SELECT upper(s)::over_explicit FROM texts
### refused
SELECT ARRAY[s]::over_explicit[] FROM texts
### refused
SELECT e::over_text FROM of_explicit
### refused
SELECT ARRAY[e]::over_text[] FROM of_explicit
### refused
SELECT ROW(e)::row_of_text FROM of_explicit
### refused
SELECT ARRAY[ROW(e)]::row_of_text[] FROM of_explicit
### refused
SELECT ROW(e)::over_row FROM of_explicit
### refused
SELECT ROW(s)::row_of_explicit FROM texts
### refused
SELECT * FROM concatenated
### refused
SELECT * FROM quoted
### refused
SELECT * FROM jsoned
### refused
SELECT * FROM json_aggregated
### refused
SELECT * FROM of_record
### refused
SELECT * FROM of_xml
### refused
SELECT * FROM of_hstore
### refused
SELECT id FROM json_policy
### refused
SELECT 'a'::json_domain
### refused
SELECT 1::over_explicit
### refused
SELECT id::over_explicit FROM people
### same
SELECT NULL::over_explicit, 'a'::over_explicit
### same
SELECT id, s FROM shades ORDER BY s
### same
SELECT count(*), max(id) FROM shades GROUP BY s
### refused
SELECT 1 WHERE 'ok'::shade
### refused
SELECT id FROM shades WHERE s
### refused
SELECT a.id FROM shades a JOIN shades b ON a.s
### refused
SELECT 1 FROM shades GROUP BY s HAVING s
### refused
SELECT count(*) FILTER (WHERE s) FROM shades
### refused
SELECT CASE WHEN s THEN 1 END FROM shades
### refused
SELECT NOT s FROM shades
### refused
SELECT s AND true FROM shades
### refused
SELECT s IS TRUE FROM shades
### refused
SELECT (ARRAY[1, 2])[s] FROM shades
### refused
SELECT (ARRAY[1, 2])[s:] FROM shades
### refused
SELECT ('{"leaked": 1}'::jsonb)[s] FROM shades
### refused
SELECT (tags)['ok'::shade] FROM people
### refused
SELECT 1 FROM shades LIMIT 'ok'::shade
### refused
EXPLAIN SELECT 1 OFFSET 'ok'::shade
### refused
SELECT 1 FROM shades FETCH FIRST ('ok'::shade) ROWS ONLY
### refused
SELECT sum(id) OVER (ORDER BY id ROWS 'ok'::shade PRECEDING) FROM shades
### refused
SELECT id FROM people TABLESAMPLE bernoulli ('ok'::shade)
### refused
SELECT id FROM people TABLESAMPLE bernoulli (50) REPEATABLE ('ok'::shade)
### refused
SELECT xmlparse(content s) FROM shades
### refused
SELECT xmlconcat(s) FROM shades
### refused
SELECT xmlserialize(content s AS varchar) FROM shades
### refused
SELECT s IS DOCUMENT FROM shades
### refused
SELECT x.* FROM shades, xmltable('/a' PASSING s COLUMNS n int PATH '.') x
### same
SELECT with_harmless_default(1), with_harmless_default(a => 2, b => 3), (5).with_harmless_default
### refused
SELECT with_default(1)
### refused
SELECT with_default(a => 1)
### refused
SELECT (1).with_default
### same
SELECT takes_amount(3), takes_amount(NULL)
### refused
SELECT takes_mail('x')
### refused
SELECT takes_mail(NULL)
### refused
SELECT (l.id::text).takes_mail FROM letters l
### refused
SELECT takes_mails('x', 'y')
### refused
SELECT takes_mails(VARIADIC ARRAY['x'])
### refused
SELECT takes_contact('(1,2)')
### refused
SELECT takes_contact(ROW('a', 1))
### refused
SELECT takes_token(1)
### same
SELECT gives_mail(), length(gives_mail())
### refused
SELECT lag(gives_mail(), 1, 'x') OVER ()
### refused
SELECT gives_mails() = '{x}'
### refused
SELECT coalesce(gives_mails(), '{x}')
### refused
SELECT lag(m, 1, 'x') OVER () FROM gives_table()
