-- Further tables for the pairs of a wrong and a right statement: rows with a time zone, local times, a key of two
-- columns, people of whom a few have the same name, and codes that are not sorted like their dates.
CREATE TABLE sites (id int PRIMARY KEY, zone text NOT NULL);
INSERT INTO sites VALUES (1, 'America/New_York'), (2, 'Europe/Berlin'), (3, 'Asia/Tokyo');
CREATE TABLE readings (id int PRIMARY KEY, site_id int NOT NULL REFERENCES sites, seen_at timestamptz NOT NULL,
  logged_at timestamp NOT NULL, value numeric(8,2));
INSERT INTO readings SELECT i, 1 + i % 3, timestamptz '2026-01-01 00:30+00' + i * interval '5 hours',
  timestamp '2026-01-01 00:30' + i * interval '5 hours', CASE WHEN i % 9 <> 0 THEN (i * 7) % 100 + 0.5 END
FROM generate_series(1, 300) i;
CREATE TABLE meters (id int PRIMARY KEY, site_id int NOT NULL REFERENCES sites, owner text NOT NULL);
INSERT INTO meters SELECT i, 1 + i % 3, 'Owner ' || CASE WHEN i = 40 THEN 1 ELSE i END FROM generate_series(1, 40) i;
CREATE TABLE tariffs (site_id int NOT NULL REFERENCES sites, class text NOT NULL, cents int NOT NULL,
  PRIMARY KEY (site_id, class));
INSERT INTO tariffs SELECT s, c, 10 * s + length(c) FROM generate_series(1, 3) s, unnest(ARRAY['day', 'night']) c;
CREATE TABLE uses (id int PRIMARY KEY, site_id int NOT NULL REFERENCES sites, class text NOT NULL,
  meter_id int NOT NULL REFERENCES meters, units int NOT NULL);
INSERT INTO uses SELECT i, 1 + i % 3, CASE WHEN i % 2 = 0 THEN 'day' ELSE 'night' END, 1 + i % 40, 1 + i % 5
FROM generate_series(1, 200) i;
CREATE TABLE codes (code text NOT NULL, label text NOT NULL);
INSERT INTO codes SELECT 'k' || i, 'Code ' || i FROM generate_series(1, 20) i;
INSERT INTO codes VALUES ('k3', 'Code 3 again');
CREATE TABLE parts (id int PRIMARY KEY, code text NOT NULL, grams int NOT NULL);
INSERT INTO parts SELECT i, 'k' || 1 + i % 20, i FROM generate_series(1, 100) i;
CREATE TABLE terms (code text PRIMARY KEY, starts_on date NOT NULL, ends_on date NOT NULL);
INSERT INTO terms VALUES ('2025-SP', '2025-02-01', '2025-05-31'), ('2025-AU', '2025-09-01', '2025-12-20'),
  ('2026-SP', '2026-02-01', '2026-05-31'), ('2026-AU', '2026-09-01', '2026-12-20');
CREATE TABLE term_units (code text PRIMARY KEY REFERENCES terms, units int NOT NULL);
INSERT INTO term_units VALUES ('2025-SP', 7), ('2025-AU', 9), ('2026-SP', 4), ('2026-AU', 8);
CREATE TABLE seasons (code text PRIMARY KEY, starts_on date NOT NULL, ends_on date NOT NULL);
INSERT INTO seasons VALUES ('a', '2025-01-01', '2025-04-01'), ('b', '2025-04-01', '2025-08-01'),
  ('c', '2025-08-01', '2030-01-01');
-- Bills have two dates, as a period has, and do not overlap.
CREATE TABLE bills (id int PRIMARY KEY, site_id int NOT NULL REFERENCES sites, issued_on date NOT NULL,
  due_on date NOT NULL, cents int NOT NULL);
INSERT INTO bills SELECT s.id * 10 + n, s.id, date '2024-01-01' + n * 30, date '2024-01-21' + n * 30, 100 * n + s.id
  FROM sites s, generate_series(1, 4) n;
CREATE TABLE bill_lines (id int PRIMARY KEY, bill_id int NOT NULL REFERENCES bills, cents int NOT NULL);
INSERT INTO bill_lines SELECT id * 10 + n, id, cents / 2 FROM bills, generate_series(1, 2) n;
