-- Statements on the database of fixture.sql. The functions vouched, public.by_type(int4),
-- public.by_type(text) and only_ints(text) are allowed. A case is a line "### outcome" and the
-- statement below it, up to the next such line.
### function-not-allowed
SELECT wrote(1)
### function-not-allowed
SELECT public.wrote(1)
### function-not-allowed
SELECT other.far(1)
### function-not-allowed
SELECT other.sum(1)
### ok
SELECT sum(1)
### ok
SELECT vouched(1), public.vouched(2), vouched(id) FROM paints
### ok
SELECT by_type(1), by_type('a'::text)
### function-not-allowed
SELECT only_ints(1)
### ok
SELECT round(2.5::float8), round(2.55, 1), round(1.5::float8::numeric, 1)
### ok
SELECT upper('x'), upper(name::varchar) FROM users LIMIT 1
### ok
SELECT length(name) FROM users LIMIT 1
### unknown-column
SELECT u.secret FROM users u
### unknown-column
SELECT users.secret FROM users
### unknown-column
SELECT public.users.secret FROM users
### unknown-column
SELECT (u).secret FROM users u
### unknown-column
SELECT (SELECT u FROM users u LIMIT 1).secret
### unknown-column
SELECT u.anything FROM users u
### unknown-column
SELECT s.anything FROM (SELECT 1 AS a) s
### failed
SELECT (name).anything FROM users
### failed
SELECT (1).wrote
### function-not-allowed
SELECT (id).pg_sleep FROM users
### failed
SELECT (ARRAY[1, 2])[1].wrote
### ok
SELECT u.name, users.name FROM users u, users LIMIT 1
### unknown-column
SELECT o.name FROM (SELECT * FROM orders) o
### function-not-allowed
SELECT wrote(id) FROM users
### function-not-allowed
SELECT n FROM calls
### function-not-allowed
SELECT n FROM public.calls
### function-not-allowed
SELECT n FROM other.calls
### function-not-allowed
SELECT * FROM sleeps
### function-not-allowed
SELECT 1 WHERE EXISTS (SELECT FROM sleeps)
### function-not-allowed
SELECT * FROM over_calls
### function-not-allowed
SELECT * FROM xml_view
### function-not-allowed
SELECT * FROM glued_view
### function-not-allowed
SELECT * FROM locked_view
### ok
SELECT * FROM good_over_good
### function-not-allowed
SELECT who FROM good_view JOIN calls ON true
### ok
SELECT * FROM vouched_view
### ok
SELECT * FROM setting_view
### function-not-allowed
SELECT * FROM guarded
### ok
SELECT * FROM well_guarded
### ok
SELECT * FROM other.things
### ok
SELECT 1::positive, 'red'::colour, '[1,3)'::span, '{red}'::colour[], NULL::paints
### ok
SELECT ROW(1, 2)::pair
### function-not-allowed
SELECT ROW(1, 2)::pair, 'red'::colour
### function-not-allowed
SELECT 1::watched
### function-not-allowed
SELECT 1::deeper
### function-not-allowed
SELECT watched(1)
### function-not-allowed
SELECT CAST(1 AS public.watched)
### function-not-allowed
SELECT ARRAY[1]::watched[]
### function-not-allowed
SELECT 1::sleepy
### function-not-allowed
SELECT ROW(1, 1)::bad_pair
### function-not-allowed
SELECT * FROM json_to_record('{"w": 1}') AS x(w watched)
### function-not-allowed
SELECT jsonb_populate_record(NULL::domains, '{"w": 1}')
### function-not-allowed
SELECT jsonb_populate_record(d, '{"w": 1}') FROM domains d
### ok
SELECT w FROM domains
### ok
SELECT jsonb_populate_record(NULL::paints, '{"amount": 1}')
### function-not-allowed
SELECT tint::int FROM paints
### function-not-allowed
SELECT int4(tint) FROM paints
### function-not-allowed
SELECT (tint).int4 FROM paints
### function-not-allowed
SELECT form FROM shapes
### function-not-allowed
SELECT 'round'::shape + 1
### ok
SELECT tint FROM paints WHERE tint = 'red'
### ok
SELECT id + 1, 'a' || 'b' FROM paints
### function-not-allowed
SELECT 'a'::text <=> 'b'::text
### function-not-allowed
SELECT 'a'::text OPERATOR(public.<=>) 'b'::text
### function-not-allowed
SELECT 'a'::text OPERATOR(public.+) 'b'::text
### ok
SELECT 'a'::text === 'a'::text
### ok
WITH paints AS (SELECT 1 AS id) SELECT id + 1 FROM paints
### function-not-allowed
SELECT p.amount + 1, 'red'::colour, vouched(1) + 1 FROM paints p, other.things
### ok
SELECT p.amount + 1, 'red'::colour FROM paints p, other.things
### function-not-allowed
SELECT ts_rewrite('a'::tsquery, 'SELECT t, s FROM x')
### ok
SELECT ts_rewrite('a & b'::tsquery, 'a'::tsquery, 'c'::tsquery)
### ok
SELECT enum_range(NULL::colour), enum_range('red'::colour, NULL), enum_first(tint), enum_last(tint), pg_column_compression(tint), getdatabaseencoding() FROM paints
