-- Names of the schema public: what a statement may use, and functions of the owner that it must not reach.
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE DOMAIN amount AS numeric CHECK (VALUE >= 0);
CREATE TYPE place AS (street text, number int);
CREATE TABLE people (id int, name text, email citext, tags hstore, feels mood, pays amount, home place, emails citext[]);
INSERT INTO people VALUES
  (1, 'Ann', 'Ann@x.org', 'a=>1', 'happy', 5, ('High', 1), '{A,b}'),
  (2, 'Bob', 'bob@x.org', 'b=>2', 'sad', 7, ('Low', 2), '{C}');
CREATE TABLE "Odd name" (id int, "or der" int);
INSERT INTO "Odd name" VALUES (1, 2);
CREATE VIEW happy_people AS SELECT * FROM people WHERE feels = 'happy';
CREATE FUNCTION counted() RETURNS bigint LANGUAGE plpgsql STABLE AS 'BEGIN RETURN (SELECT count(*) FROM people); END';
CREATE FUNCTION counted_with_path() RETURNS bigint LANGUAGE sql STABLE SET search_path = public
  AS 'SELECT count(*) FROM people';
CREATE VIEW counts AS SELECT counted() AS n;
CREATE FUNCTION plain(int) RETURNS int LANGUAGE sql IMMUTABLE RETURN $1 + 1;
CREATE TEXT SEARCH CONFIGURATION plain_words (COPY = simple);
CREATE COLLATION by_bytes FROM "C";

-- Functions that are not listed, with names of columns, types, syntax and operators.
CREATE FUNCTION leak(people) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION street(place) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION leak_any(anyelement) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION "json_array"(int, int) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION "json_array"(int) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION "json_object"(int) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION "json_scalar"(int) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION "json_serialize"(int) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE AGGREGATE "json_arrayagg"(int) (SFUNC = int4_sum, STYPE = bigint);
CREATE FUNCTION joined(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = joined);
CREATE OPERATOR >> (LEFTARG = int, RIGHTARG = bigint, FUNCTION = int48ne);

-- The service's own queries must not call these.
CREATE FUNCTION array_to_string(text[], text) RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
CREATE FUNCTION array_agg(text) RETURNS text[] LANGUAGE sql AS $$ SELECT '{}'::text[] $$;

-- Casts that call a function which is not listed, and types with values of their source in them.
CREATE TYPE coin AS ENUM ('cent', 'euro');
CREATE FUNCTION coin_text(coin) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE CAST (coin AS text) WITH FUNCTION coin_text(coin) AS IMPLICIT;
CREATE DOMAIN small_coin AS coin;
CREATE TYPE purse AS (c coin, n int);
CREATE TYPE coins AS RANGE (SUBTYPE = coin);
CREATE TABLE purses (id int, c coin, list coin[], d small_coin, p purse, ps purse[], r coins);
CREATE TABLE boxes (id int, ps purses[]);
CREATE VIEW lists AS SELECT id, list FROM purses;

-- A domain whose check calls a function that is not listed, and types with its values in them.
CREATE FUNCTION seen(text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE DOMAIN mail AS text CHECK (seen(VALUE));
CREATE TYPE contact AS (m mail, n int);
CREATE TABLE letters (id int, m mail);
CREATE TABLE lists_of_mail (id int, ms mail[]);
CREATE TABLE contacts (id int, c contact);
INSERT INTO letters VALUES (1, 'a'), (2, 'b');

-- Views that call functions which are not listed, and whose text does not show it.
CREATE TYPE grade AS ENUM ('low', 'high');
CREATE FUNCTION grade_is(grade, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION text_is(text, grade) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR = (LEFTARG = grade, RIGHTARG = text, FUNCTION = grade_is);
CREATE OPERATOR = (LEFTARG = text, RIGHTARG = grade, FUNCTION = text_is);
CREATE FUNCTION same_grade(grade, grade) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR = (LEFTARG = grade, RIGHTARG = grade, FUNCTION = same_grade);
CREATE TABLE grades (id int, g grade);
CREATE VIEW of_case AS SELECT CASE g WHEN 'low'::text THEN 1 END AS n FROM grades;
CREATE VIEW of_nullif AS SELECT NULLIF(g, 'low'::text) IS NULL AS n FROM grades;
CREATE VIEW of_distinct AS SELECT id FROM grades WHERE g IS DISTINCT FROM 'low'::text;
CREATE VIEW of_using AS SELECT 1 AS n FROM grades JOIN (SELECT 'low'::grade AS g) t USING (g);
CREATE VIEW of_natural AS SELECT 1 AS n FROM (SELECT g FROM grades) a NATURAL JOIN (SELECT 'low'::grade AS g) t;
CREATE VIEW of_in AS SELECT id FROM grades WHERE g IN ('low'::text, 'high'::text);
CREATE VIEW of_any AS SELECT id FROM grades WHERE g = ANY (ARRAY['low'::text]);
CREATE VIEW of_cast AS SELECT upper(c) AS t FROM purses;
CREATE VIEW of_array AS SELECT (list[1])::text AS t FROM purses;
CREATE VIEW over_case AS SELECT n FROM (SELECT * FROM of_case) s;
CREATE DOMAIN graded AS text CHECK (CASE VALUE WHEN 'low'::grade THEN true ELSE true END);
CREATE VIEW of_domain AS SELECT 'a'::text::graded::text AS t;
CREATE TABLE watched (id int);
ALTER TABLE watched ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON watched USING (NULLIF('low'::grade, 'x'::text) IS NOT NULL);

-- Casts that the server looks up while it runs, and casts by another type than the one that is named.
CREATE TYPE explicit AS ENUM ('a', 'b');
CREATE DOMAIN over_explicit AS explicit;
CREATE DOMAIN over_text AS text;
CREATE TYPE row_of_text AS (s text);
CREATE TYPE row_of_explicit AS (e explicit);
CREATE DOMAIN over_row AS row_of_text;
CREATE FUNCTION explicit_text(explicit) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION text_explicit(text) RETURNS explicit LANGUAGE sql AS $$ SELECT 'a'::explicit $$;
CREATE CAST (explicit AS text) WITH FUNCTION explicit_text(explicit);
CREATE CAST (text AS explicit) WITH FUNCTION text_explicit(text);
CREATE FUNCTION int_explicit(int) RETURNS explicit LANGUAGE sql AS $$ SELECT 'a'::explicit $$;
CREATE CAST (int AS explicit) WITH FUNCTION int_explicit(int);
CREATE TABLE of_explicit (e explicit, es explicit[], d over_explicit);
CREATE TABLE texts (s text);
CREATE VIEW concatenated AS SELECT 'x' || e AS t FROM of_explicit;
CREATE VIEW quoted AS SELECT quote_literal(e) AS t FROM of_explicit;
CREATE TYPE jsonic AS ENUM ('a');
CREATE FUNCTION jsonic_json(jsonic) RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE CAST (jsonic AS json) WITH FUNCTION jsonic_json(jsonic);
CREATE TABLE of_jsonic (id int, j jsonic);
CREATE VIEW jsoned AS SELECT to_json(j)::text AS t FROM of_jsonic;
CREATE VIEW json_aggregated AS SELECT jsonb_agg(j)::text AS t FROM of_jsonic;
CREATE TABLE json_policy (id int);
ALTER TABLE json_policy ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON json_policy USING (to_json('a'::jsonic) IS NOT NULL);
CREATE DOMAIN json_domain AS text CHECK (to_json(VALUE::jsonic) IS NOT NULL);
CREATE VIEW of_record AS SELECT z.a FROM jsonb_to_record('{"m": "x"}') AS z (a int, m mail);
CREATE VIEW of_xml AS SELECT x.m::text AS t FROM xmltable('/a' PASSING '<a>1</a>' COLUMNS m mail PATH '.') x;
CREATE VIEW of_hstore AS SELECT (l #= 'm=>z').id FROM letters l;

-- Values that are printed as names.
CREATE TYPE row_of_name AS (r regclass);
CREATE TABLE names (r regclass, n row_of_name);
INSERT INTO names VALUES ('people', ROW('people'));
CREATE VIEW viewed_names AS SELECT concat(r) AS t, concat(r) = 'people' AS same FROM names;
CREATE VIEW table_names AS SELECT tableoid::regclass::text AS t FROM people;

CREATE VIEW ":funcid 1" AS SELECT 1 AS ":funcid", 2 AS "{FUNCEXPR :funcid 2622", 3 AS "a\ (" FROM people ":opno";
GRANT SELECT ON ALL TABLES IN SCHEMA public TO glasshouse_reader;

-- Casts that were made AS ASSIGNMENT: PostgreSQL uses them in queries where its grammar needs a type.
CREATE TYPE shade AS ENUM ('ok');
CREATE FUNCTION shade_bool(shade) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION shade_int(shade) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION shade_bigint(shade) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE FUNCTION shade_float(shade) RETURNS double precision LANGUAGE sql AS 'SELECT 1::float8';
CREATE FUNCTION shade_real(shade) RETURNS real LANGUAGE sql AS 'SELECT 1::float4';
CREATE FUNCTION shade_text(shade) RETURNS text LANGUAGE sql AS $$ SELECT 'leaked' $$;
CREATE FUNCTION shade_xml(shade) RETURNS xml LANGUAGE sql AS $$ SELECT '<a/>'::xml $$;
CREATE CAST (shade AS boolean) WITH FUNCTION shade_bool(shade) AS ASSIGNMENT;
CREATE CAST (shade AS int) WITH FUNCTION shade_int(shade) AS ASSIGNMENT;
CREATE CAST (shade AS bigint) WITH FUNCTION shade_bigint(shade) AS ASSIGNMENT;
CREATE CAST (shade AS double precision) WITH FUNCTION shade_float(shade) AS ASSIGNMENT;
CREATE CAST (shade AS real) WITH FUNCTION shade_real(shade) AS ASSIGNMENT;
CREATE CAST (shade AS text) WITH FUNCTION shade_text(shade) AS ASSIGNMENT;
CREATE CAST (shade AS xml) WITH FUNCTION shade_xml(shade) AS ASSIGNMENT;
CREATE TABLE shades (id int, s shade);
INSERT INTO shades VALUES (1, 'ok');

-- What a listed function brings along: default arguments, and domains of its arguments and results.
CREATE FUNCTION leak_int() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION with_default(a int, b int DEFAULT leak_int()) RETURNS int LANGUAGE sql IMMUTABLE RETURN a;
CREATE FUNCTION with_harmless_default(a int, b int DEFAULT 1 + 1) RETURNS int LANGUAGE sql IMMUTABLE RETURN a + b;
CREATE FUNCTION takes_mail(m mail) RETURNS int LANGUAGE sql IMMUTABLE RETURN 1;
CREATE FUNCTION takes_mails(VARIADIC m mail[]) RETURNS int LANGUAGE sql IMMUTABLE RETURN 1;
CREATE FUNCTION takes_contact(c contact) RETURNS int LANGUAGE sql IMMUTABLE RETURN 1;
CREATE FUNCTION takes_amount(a amount) RETURNS int LANGUAGE sql IMMUTABLE RETURN 1;
CREATE FUNCTION gives_mail() RETURNS mail LANGUAGE sql STABLE AS 'SELECT m FROM letters LIMIT 1';
CREATE FUNCTION gives_mails() RETURNS mail[] LANGUAGE sql STABLE AS 'SELECT ms FROM lists_of_mail LIMIT 1';
CREATE FUNCTION gives_table() RETURNS TABLE (m mail) LANGUAGE sql STABLE AS 'SELECT m FROM letters';
CREATE TYPE token AS ENUM ('a');
CREATE FUNCTION int_token(int) RETURNS token LANGUAGE sql AS $$ SELECT 'a'::token $$;
CREATE CAST (int AS token) WITH FUNCTION int_token(int) AS IMPLICIT;
CREATE FUNCTION takes_token(t token) RETURNS int LANGUAGE sql IMMUTABLE RETURN 1;
