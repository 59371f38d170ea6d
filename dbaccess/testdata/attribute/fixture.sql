-- Objects of the owner of a database, for hostile.sql and honest.sql. Each function says that it was called.
SET client_min_messages = warning;

-- ------------------------------------------------------------- types
CREATE TYPE fx_addr AS (street text, city text, zip text);
CREATE TYPE fx_person_t AS (person_id int, full_name text, age int);
CREATE TYPE fx_pair AS (a int, b text);
CREATE TYPE fx_mood AS ENUM ('low', 'ok', 'high');
CREATE DOMAIN fx_email AS text;
CREATE DOMAIN fx_smallint AS int CHECK (VALUE < 1000000);
CREATE DOMAIN fx_addr_dom AS fx_addr;

-- functions used by domain checks come first
CREATE FUNCTION fx_check_int(v int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS
$$BEGIN RAISE NOTICE 'FX_CALLED fx_check_int'; RETURN true; END$$;
CREATE FUNCTION fx_check_txt(v text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS
$$BEGIN RAISE NOTICE 'FX_CALLED fx_check_txt'; RETURN true; END$$;
CREATE DOMAIN fx_pos AS int CHECK (fx_check_int(VALUE));
CREATE DOMAIN fx_dtext AS text CHECK (fx_check_txt(VALUE));
CREATE TYPE fx_wrap AS (p fx_pos, t fx_dtext);
CREATE TYPE fx_outer AS (w fx_wrap, n int);
CREATE DOMAIN fx_email2 AS fx_dtext;

-- ------------------------------------------------------------- tables
CREATE TABLE fx_customers (customer_id int PRIMARY KEY, name text, country text, age int, "type" text, email fx_email, "position" int);
INSERT INTO fx_customers VALUES (1,'Ana','PT',31,'retail','ana@x.org',1),(2,'Bo','SE',44,'retail','bo@x.org',2),(3,'Cy','US',27,'trade','cy@x.org',3);
CREATE TABLE fx_orders (order_id int PRIMARY KEY, customer_id int REFERENCES fx_customers, status text, amount numeric(10,2), placed_on date, note text);
INSERT INTO fx_orders VALUES (1,1,'open',10.5,'2024-01-05','red shoes'),(2,1,'paid',99,'2024-01-17','blue hat'),(3,2,'paid',45.25,'2024-02-02','green coat'),(4,3,'void',7,'2024-03-09',NULL);
CREATE TABLE fx_base (id int, label text);
INSERT INTO fx_base VALUES (1,'base one'),(2,'base two');
CREATE TABLE fx_child (extra int) INHERITS (fx_base);
INSERT INTO fx_child VALUES (11,'child one',5);
CREATE TABLE fx_grandchild (more text) INHERITS (fx_child);
INSERT INTO fx_grandchild VALUES (21,'grand',6,'m');
CREATE TABLE fx_people OF fx_person_t;
INSERT INTO fx_people VALUES (1,'Ana Lopes',31),(2,'Bo Berg',44);
CREATE TABLE fx_events (event_id int, happened_on date NOT NULL, kind text, hours numeric) PARTITION BY RANGE (happened_on);
CREATE TABLE fx_events_2023 PARTITION OF fx_events FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE fx_events_2024 PARTITION OF fx_events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
INSERT INTO fx_events VALUES (1,'2023-05-01','click',1.5),(2,'2024-05-01','view',2),(3,'2024-06-01','click',3);
CREATE TABLE fx_boxed (id int PRIMARY KEY, addr fx_addr, addrs fx_addr[], qty int[], cfg jsonb, home fx_addr_dom, doc xml, span int4range, words text[]);
INSERT INTO fx_boxed VALUES
 (1, ROW('1 A St','Faro','8000'), ARRAY[ROW('1 A St','Faro','8000'),ROW('2 B St','Lund','222')]::fx_addr[], '{3,0,2}', '{"k":"v","n":[1,2]}', ROW('h','Faro','1')::fx_addr, '<a>1</a>', '[1,5)', '{one,two}'),
 (2, ROW('9 C St','Rome','100'), ARRAY[ROW('9 C St','Rome','100')]::fx_addr[], '{0,1}', '{"k":"w","n":[3]}', NULL, '<a>2</a>', '[2,9)', '{three}');
-- columns named like functions and types
CREATE TABLE fx_shadow (id int, pg_sleep int, ts_stat text, pg_stat_get_activity int, pg_cancel_backend int, nextval text, lo_get int,
                        fx_any text, fx_rec text, fx_txt text, fx_int int, fx_shadow_leak text, fx_pair text, "FX_UP" text);
INSERT INTO fx_shadow VALUES (1,0,'plain',NULL,0,'fx_seq',1,'col','col','col',1,'col','col','up'),(2,0,'plain2',NULL,0,'fx_seq',2,'col2','col2','col2',2,'col2','col2','up2');
CREATE TABLE fx_shadow_child (more int) INHERITS (fx_shadow);
CREATE TABLE fx_dropped (id int, fx_any text, v text);
INSERT INTO fx_dropped VALUES (1,'x','kept');
ALTER TABLE fx_dropped DROP COLUMN fx_any;
CREATE TABLE fx_target (k int PRIMARY KEY, v text, n int, addr fx_addr);
INSERT INTO fx_target VALUES (1,'one',1,NULL),(2,'two',2,NULL);
CREATE TABLE "fx_Mixed Case" (id int, "Full Name" text);
INSERT INTO "fx_Mixed Case" VALUES (1,'Ana'),(2,'Bo');
CREATE TABLE fx_docs (id int, body text, tv tsvector, docid oid, at timestamptz, lasted interval, o fx_orders);
INSERT INTO fx_docs SELECT 1,'select to_tsvector(note) from fx_orders',to_tsvector('a b'),424242,now(),'1 millisecond', x FROM fx_orders x WHERE order_id = 1;
CREATE TABLE fx_film (film_id int PRIMARY KEY, title text, length int, rating text, "text" text, "date" date, "time" time, "timestamp" timestamp, "interval" interval, rank int, count int, sum numeric, version text, value numeric, key text, status text, "user" text, year int, month int, "left" int, "right" int, lower text, upper text, path text, hash text, format text, replace text, reverse boolean, point text, box text, money numeric, "char" text, sign int, abs numeric, power numeric, log text, mode text, "json" json, uuid text, bit int, random int, now timestamptz, total numeric, lock boolean, md5 text, floor int, notify boolean, sleep numeric);
INSERT INTO fx_film (film_id,title,length,rating,"text","date","time","timestamp","interval",rank,count,sum,version,value,key,status,"user",year,month,"left","right",lower,upper,path,hash,format,replace,reverse,point,box,money,"char",sign,abs,power,log,mode,"json",uuid,bit,random,now,total,lock,md5,floor,notify,sleep)
 VALUES (1,'ACADEMY DINOSAUR',86,'PG','t','2006-02-15','10:00','2006-02-15 10:00','3 days',1,5,20.5,'v1',3,'k1','ok','ana',2006,2,1,2,'a','A','/a/b','h1','DVD','r',false,'p','b',12,'c',1,2,3,'l','m','{"a":1}','u',1,4,now(),30,false,'m5',2,true,7.5),
        (2,'ACE GOLDFINGER',48,'G','t2','2007-02-15','11:00','2007-02-15 10:00','4 days',2,6,21.5,'v2',4,'k2','late','bo',2007,3,3,4,'b','B','/a/c','h2','BluRay','r2',true,'p2','b2',13,'d',-1,3,4,'l2','m2','{"a":2}','u2',0,5,now(),31,true,'m52',3,false,8);
CREATE SEQUENCE fx_seq;

-- ------------------------------------------------------------- views
CREATE VIEW fx_v_orders AS SELECT order_id, customer_id, status, amount FROM fx_orders;
CREATE VIEW fx_v_totals AS SELECT customer_id, count(*) AS count, sum(amount) AS total, max(placed_on) AS date FROM fx_orders GROUP BY customer_id;
CREATE VIEW fx_v_shadow AS SELECT id, fx_any AS renamed, pg_sleep FROM fx_shadow;
CREATE MATERIALIZED VIEW fx_mv_orders AS SELECT order_id, amount AS money, placed_on AS "date" FROM fx_orders;

-- ------------------------------------------------------------- one-argument functions
CREATE FUNCTION fx_any(v anyelement) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_any'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_rec(v record) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_rec'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_int(v int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_int'; RETURN 1; END$$;
CREATE FUNCTION fx_big(v bigint) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_big'; RETURN 1; END$$;
CREATE FUNCTION fx_num(v numeric) RETURNS numeric LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_num'; RETURN 1; END$$;
CREATE FUNCTION fx_txt(v text) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_txt'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_run(q text) RETURNS xml LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_run'; RETURN query_to_xml(q, true, false, ''); END$$;
CREATE FUNCTION fx_bool(v boolean) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_bool'; RETURN true; END$$;
CREATE FUNCTION fx_dt(v date) RETURNS date LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_dt'; RETURN '2024-01-01'; END$$;
CREATE FUNCTION fx_tstz(v timestamptz) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_tstz'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_js(v jsonb) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_js'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_xm(v xml) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_xm'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_nm(v name) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_nm'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_arr(v anyarray) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_arr'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_intarr(v int[]) RETURNS int[] LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_intarr'; RETURN '{1,2}'; END$$;
CREATE FUNCTION fx_rng(v anyrange) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_rng'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_enum(v anyenum) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_enum'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_mail(v fx_email) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_mail'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_small(v fx_smallint) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_small'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_var(VARIADIC v int[]) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_var'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_varany(VARIADIC v anyarray) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_varany'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_def(v int, w text DEFAULT 'x', z boolean DEFAULT false) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_def'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_defany(v anyelement, w int DEFAULT 1) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_defany'; RETURN 1; END$$;
CREATE FUNCTION fx_set(v int) RETURNS SETOF int LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_set'; RETURN NEXT 1; RETURN NEXT 2; END$$;
CREATE FUNCTION fx_outp(v int, OUT a int, OUT b text) LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_outp'; a := 1; b := 'FX!'; END$$;
CREATE FUNCTION fx_imm(v int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_imm'; RETURN 1; END$$;
CREATE FUNCTION fx_over(v int) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_over'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_over(v text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_over'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_orders_leak(v fx_orders) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_orders_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_orders_tab(v fx_orders) RETURNS TABLE (x int, y text) LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_orders_tab'; x := 1; y := 'FX!'; RETURN NEXT; END$$;
CREATE FUNCTION fx_customers_leak(v fx_customers) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_customers_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_base_leak(v fx_base) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_base_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_person_leak(v fx_person_t) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_person_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_addr_leak(v fx_addr) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_addr_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_events_leak(v fx_events) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_events_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_boxed_leak(v fx_boxed) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_boxed_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_shadow_leak(v fx_shadow) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_shadow_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_target_leak(v fx_target) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_target_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_v_leak(v fx_v_orders) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_v_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_mv_leak(v fx_mv_orders) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_mv_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_mixed_leak(v "fx_Mixed Case") RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_mixed_leak'; RETURN 'FX!'; END$$;
CREATE FUNCTION "fx_Weird Name"(v anyelement) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_Weird Name'; RETURN 'FX!'; END$$;
CREATE FUNCTION "FX_UP"(v anyelement) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED FX_UP'; RETURN 'FX!'; END$$;
CREATE FUNCTION "fx_été"(v anyelement) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_été'; RETURN 'FX!'; END$$;
CREATE FUNCTION fx_long_name_padded_to_sixty_three_bytes_xxxxxxxxxxxxxxxxxxxxxx(v anyelement) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_long_name'; RETURN 'FX!'; END$$;
-- a function with the name of a type: s.fx_pair
CREATE FUNCTION fx_pair(v int) RETURNS fx_pair LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_pair'; RETURN ROW(1,'FX!')::fx_pair; END$$;
CREATE FUNCTION fx_pair(v fx_orders) RETURNS fx_pair LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_pair'; RETURN ROW(1,'FX!')::fx_pair; END$$;
CREATE CAST (fx_orders AS fx_pair) WITH FUNCTION fx_pair(fx_orders) AS ASSIGNMENT;
CREATE FUNCTION fx_mood(v text) RETURNS fx_mood LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_mood'; RETURN 'ok'; END$$;
-- aggregates of one argument
CREATE FUNCTION fx_agg_s(st int, v int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_agg_s'; RETURN coalesce(st,0) + 1; END$$;
CREATE AGGREGATE fx_agg(int) (SFUNC = fx_agg_s, STYPE = int);
CREATE FUNCTION fx_aggany_s(st int, v anyelement) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$BEGIN RAISE NOTICE 'FX_CALLED fx_aggany_s'; RETURN coalesce(st,0) + 1; END$$;
CREATE AGGREGATE fx_aggany(anyelement) (SFUNC = fx_aggany_s, STYPE = int);

-- ------------------------------------------------------------- grants
GRANT SELECT ON ALL TABLES IN SCHEMA public TO glasshouse_reader;
GRANT SELECT, USAGE ON SEQUENCE fx_seq TO glasshouse_reader;
