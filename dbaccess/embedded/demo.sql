-- The demo knowledge base: a small shop with a help centre. All values are computed from row
-- numbers, so every installation has the same data. Dates count back from today.
CREATE FUNCTION pg_temp.pick(n bigint, salt text, words text[]) RETURNS text LANGUAGE sql IMMUTABLE AS
  $$ SELECT words[1 + abs(hashint8(n * 31 + hashtext(salt))::bigint) % cardinality(words)] $$;
CREATE FUNCTION pg_temp.roll(n bigint, salt text, sides int) RETURNS int LANGUAGE sql IMMUTABLE AS
  $$ SELECT (abs(hashint8(n * 131 + hashtext(salt))::bigint) % sides)::int $$;

CREATE TABLE users (
  id integer PRIMARY KEY, name text NOT NULL, email text NOT NULL UNIQUE, country text NOT NULL, plan text NOT NULL DEFAULT 'free',
  tags text[] NOT NULL DEFAULT '{}', preferences jsonb NOT NULL DEFAULT '{}', active boolean NOT NULL DEFAULT true, created_at timestamptz NOT NULL DEFAULT now());
COMMENT ON TABLE users IS 'People with an account';
COMMENT ON COLUMN users.plan IS 'free, team or enterprise';
INSERT INTO users
SELECT n, f || ' ' || l, lower(f) || '.' || lower(l) || n || '@example.com', pg_temp.pick(n, 'country', '{Germany,France,Spain,Poland,Sweden,Japan,Brazil,Canada,India,Kenya}'),
  pg_temp.pick(n, 'plan', '{free,free,free,team,team,enterprise}'), ARRAY[pg_temp.pick(n, 'tag', '{beta,newsletter,partner,student}'), pg_temp.pick(n, 'tag2', '{mobile,desktop}')],
  jsonb_build_object('theme', pg_temp.pick(n, 'theme', '{dark,light}'), 'page_size', 10 * (1 + pg_temp.roll(n, 'page', 5)), 'notifications', jsonb_build_object('email', n % 3 = 0)),
  pg_temp.roll(n, 'active', 10) > 0, now() - make_interval(days => 90 + pg_temp.roll(n, 'since', 900), mins => pg_temp.roll(n, 'min', 1440))
FROM (SELECT n, pg_temp.pick(n, 'first', '{Ada,Grace,Linus,Marie,Alan,Rosa,Noor,Kofi,Yuki,Ines,Omar,Lena,Pavel,Sofia,Hugo,Mira}') f,
  pg_temp.pick(n, 'last', '{Weber,Martin,Garcia,Nowak,Larsson,Sato,Silva,Roy,Patel,Otieno,Keller,Moreau,Lopez,Kowalski,Berg,Tanaka}') l FROM generate_series(1, 500) n) s;

CREATE TABLE user_activities (
  id bigint PRIMARY KEY, user_id integer NOT NULL REFERENCES users(id), action text NOT NULL, duration_ms integer, details jsonb, "timestamp" timestamptz NOT NULL DEFAULT now());
COMMENT ON TABLE user_activities IS 'What users did, one row an action, over the last 90 days';
COMMENT ON COLUMN user_activities.duration_ms IS 'NULL where the action has no duration';
-- The square of the random number makes some users much more active than others.
INSERT INTO user_activities
SELECT n, 1 + (pg_temp.roll(n, 'user', 23) * pg_temp.roll(n, 'user2', 23))::int % 500, pg_temp.pick(n, 'action', '{login,search,search,view,view,view,download,comment,share,logout}'),
  CASE WHEN n % 7 > 0 THEN 20 + pg_temp.roll(n, 'ms', 4000) END, CASE WHEN n % 3 = 0 THEN jsonb_build_object('page', '/docs/' || n % 200, 'device', pg_temp.pick(n, 'device', '{phone,laptop,tablet}')) END,
  now() - make_interval(mins => pg_temp.roll(n, 'when', 90 * 1440)) FROM generate_series(1, 25000) n;
CREATE INDEX ON user_activities (user_id);
CREATE INDEX ON user_activities ("timestamp");

CREATE TABLE categories (id integer PRIMARY KEY, name text NOT NULL UNIQUE, parent_id integer REFERENCES categories(id));
COMMENT ON TABLE categories IS 'Subjects of documents and articles, a tree';
INSERT INTO categories VALUES (1, 'Help centre', NULL), (2, 'Billing', 1), (3, 'Accounts', 1), (4, 'Engineering', NULL), (5, 'Databases', 4), (6, 'Operations', 4), (7, 'Product', NULL);

CREATE TABLE documents (
  id integer PRIMARY KEY, title text NOT NULL, content text NOT NULL, category_id integer REFERENCES categories(id), author_id integer REFERENCES users(id),
  tags text[] NOT NULL DEFAULT '{}', metadata jsonb NOT NULL DEFAULT '{}', processed boolean NOT NULL DEFAULT false, created_at timestamptz NOT NULL DEFAULT now());
COMMENT ON TABLE documents IS 'Internal documents, some not yet processed';
INSERT INTO documents
SELECT n, pg_temp.pick(n, 'verb', '{How to restore,A guide to,Notes on,What we learned from,Checklist for,Troubleshooting}') || ' ' || pg_temp.pick(n, 'noun', '{backups,invoices,single sign-on,slow queries,the release process,customer imports,data retention,on-call rotations}'),
  'This document explains ' || pg_temp.pick(n, 'noun', '{backups,invoices,single sign-on,slow queries,the release process,customer imports,data retention,on-call rotations}') || '. ' ||
  repeat(pg_temp.pick(n, 'body', '{"Start with the dashboard and note what changed. ","Ask the owner before you delete anything. ","Each step can be repeated safely. ","Measure first and write the figures down. "}') || pg_temp.pick(n, 'body2', '{"Most incidents are solved within an hour. ","The customer should hear from us the same day. ","See the related articles for the background. "}'), 2 + pg_temp.roll(n, 'long', 6)),
  2 + pg_temp.roll(n, 'cat', 6), 1 + pg_temp.roll(n, 'author', 500), ARRAY[pg_temp.pick(n, 'dt', '{howto,policy,postmortem,reference}'), pg_temp.pick(n, 'dt2', '{internal,public}')],
  jsonb_build_object('version', 1 + pg_temp.roll(n, 'v', 9), 'reviewed', n % 4 = 0), n % 3 > 0, now() - make_interval(days => pg_temp.roll(n, 'd', 400)) FROM generate_series(1, 800) n;

CREATE TABLE articles (id integer PRIMARY KEY, title text NOT NULL, content text NOT NULL, category_id integer REFERENCES categories(id), views integer NOT NULL DEFAULT 0, published_at timestamptz);
COMMENT ON TABLE articles IS 'Published help articles';
INSERT INTO articles
SELECT n, pg_temp.pick(n, 'at', '{Reset your password,Read your invoice,Invite your team,Export your data,Understand your plan,Connect a database,Share a report,Cancel an order}') || ' (part ' || 1 + n / 40 || ')',
  'Open the settings, choose ' || pg_temp.pick(n, 'as', '{Security,Billing,Team,Data}') || ' and follow the steps. ' || repeat('If something looks wrong, write to support and name the page. ', 1 + pg_temp.roll(n, 'al', 5)),
  2 + pg_temp.roll(n, 'ac', 2), pg_temp.roll(n, 'av', 5000), CASE WHEN n % 11 > 0 THEN now() - make_interval(days => pg_temp.roll(n, 'ad', 300)) END FROM generate_series(1, 320) n;

CREATE TABLE pipeline_input (id integer PRIMARY KEY, content text);
COMMENT ON TABLE pipeline_input IS 'Texts waiting for a pipeline; content may be NULL';
INSERT INTO pipeline_input SELECT n, CASE WHEN n % 10 > 0 THEN pg_temp.pick(n, 'pi', '{"The delivery was late but the support team was kind.","Great value, I would order again.","The invoice shows the wrong address.","Please add dark mode to the mobile app.","I cannot log in since this morning."}') || ' (ticket ' || n || ')' END FROM generate_series(1, 400) n;
CREATE TABLE raw_data (id integer PRIMARY KEY, content text);
COMMENT ON TABLE raw_data IS 'Raw imports as they came; content may be NULL';
INSERT INTO raw_data SELECT n, CASE WHEN n % 8 > 0 THEN format('%s;%s;%s', n, pg_temp.pick(n, 'rc', '{Berlin,Paris,Madrid,Warsaw,Tokyo}'), (pg_temp.roll(n, 'rv', 100000) / 100.0)::numeric(10,2)) END FROM generate_series(1, 600) n;

CREATE TABLE customers (id integer PRIMARY KEY, name text NOT NULL, email text NOT NULL, city text, credit_limit numeric(12,2) NOT NULL DEFAULT 0, address jsonb, created_at timestamptz NOT NULL DEFAULT now());
COMMENT ON TABLE customers IS 'Companies that order';
COMMENT ON COLUMN customers.credit_limit IS 'In euros';
INSERT INTO customers
SELECT n, pg_temp.pick(n, 'c1', '{Nordic,Alpine,Atlantic,Harbour,Golden,Silver,River}') || ' ' || pg_temp.pick(n, 'c2', '{Foods,Logistics,Textiles,Robotics,Books,Instruments}') || ' ' || pg_temp.pick(n, 'c3', '{Ltd,GmbH,SA,AB}'),
  'office' || n || '@customer.example', pg_temp.pick(n, 'city', '{Berlin,Lyon,Madrid,Gdansk,Malmo,Osaka}'), 1000 + pg_temp.roll(n, 'cl', 90000) + 0.5,
  jsonb_build_object('street', 'Main Street ' || 1 + n % 99, 'zip', (10000 + n)::text), now() - make_interval(days => 100 + pg_temp.roll(n, 'cd', 1000)) FROM generate_series(1, 300) n;

CREATE TABLE products (id integer PRIMARY KEY, name text NOT NULL, price numeric(10,2) NOT NULL CHECK (price > 0), sizes integer[] NOT NULL DEFAULT '{}', attributes jsonb NOT NULL DEFAULT '{}');
COMMENT ON TABLE products IS 'What is sold';
INSERT INTO products SELECT n, pg_temp.pick(n, 'p1', '{Oak,Steel,Linen,Glass,Wool}') || ' ' || pg_temp.pick(n, 'p2', '{desk,lamp,chair,shelf,blanket,vase}') || ' ' || n, 5 + pg_temp.roll(n, 'pp', 50000) / 100.0,
  ARRAY[pg_temp.roll(n, 's1', 50), 50 + pg_temp.roll(n, 's2', 50)], jsonb_build_object('colour', pg_temp.pick(n, 'pc', '{red,green,blue,black}'), 'weight_kg', pg_temp.roll(n, 'w', 300) / 10.0) FROM generate_series(1, 120) n;

CREATE TABLE orders (id integer PRIMARY KEY, customer_id integer NOT NULL REFERENCES customers(id), status text NOT NULL, total numeric(12,2) NOT NULL DEFAULT 0, ordered_at timestamptz NOT NULL);
COMMENT ON TABLE orders IS 'Orders; total is the sum of their items';
INSERT INTO orders SELECT n, 1 + pg_temp.roll(n, 'oc', 300), pg_temp.pick(n, 'os', '{paid,paid,paid,shipped,shipped,open,cancelled}'), 0, now() - make_interval(mins => pg_temp.roll(n, 'od', 365 * 1440)) FROM generate_series(1, 5000) n;
CREATE TABLE order_items (order_id integer NOT NULL REFERENCES orders(id), line integer NOT NULL, product_id integer NOT NULL REFERENCES products(id), quantity integer NOT NULL, unit_price numeric(10,2) NOT NULL, PRIMARY KEY (order_id, line));
COMMENT ON TABLE order_items IS 'Lines of orders';
INSERT INTO order_items SELECT o, l, p.id, 1 + pg_temp.roll(o * 10 + l, 'q', 5), p.price FROM generate_series(1, 5000) o, generate_series(1, 3) l JOIN products p ON true WHERE p.id = 1 + pg_temp.roll(o * 10 + l, 'ip', 120) AND (l = 1 OR pg_temp.roll(o * 10 + l, 'il', 2) = 0);
UPDATE orders o SET total = s.total FROM (SELECT order_id, sum(quantity * unit_price) total FROM order_items GROUP BY 1) s WHERE s.order_id = o.id;
CREATE INDEX ON orders (customer_id);

CREATE VIEW customer_revenue AS SELECT c.id, c.name, count(o.id) AS orders, coalesce(sum(o.total), 0) AS revenue FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.status <> 'cancelled' GROUP BY c.id, c.name;
COMMENT ON VIEW customer_revenue IS 'Orders and revenue of each customer, cancelled ones left out';

-- Without this, the functions would exist until the server has ended the session, some time after its client.
DROP FUNCTION pg_temp.pick, pg_temp.roll;
