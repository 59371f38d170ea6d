-- A case is a line "### outcome" and the statement below it: "ok", or the reason of the refusal.
### ok
UPDATE staff SET name = 'x', ssn = 'new' WHERE id = 1
### ok
UPDATE staff SET (name, ssn) = ('x', DEFAULT) WHERE staff.id = 1
### ok
UPDATE staff AS s SET ssn = upper(s.name) WHERE s.boss IS NULL RETURNING s.id, name
### ok
DELETE FROM staff WHERE id = 4
### ok
DELETE FROM staff USING logs l WHERE l.staff_id = staff.id AND l.ssn = 'open'
### ok
INSERT INTO staff (id, name, ssn) VALUES (5, 'x', 'y')
### ok
INSERT INTO staff (id, ssn) SELECT id, text FROM logs
### ok
INSERT INTO staff (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = excluded.name, ssn = 'x'
### ok
INSERT INTO staff (id) VALUES (1) ON CONFLICT DO NOTHING
### ok
INSERT INTO logs (id, text) SELECT id, name FROM staff
### ok
WITH w AS (SELECT name AS x FROM staff) INSERT INTO logs (text) SELECT x FROM w WHERE x <> ''
### ok
UPDATE logs SET text = s.name FROM staff s WHERE s.id = logs.staff_id
### ok
UPDATE logs SET text = 'x' WHERE staff_id IN (SELECT s.id FROM staff s WHERE s.name = 'Ann')
### ok
UPDATE logs SET ssn = upper(logs.ssn)
### ok
MERGE INTO staff s USING logs l ON s.id = l.staff_id WHEN MATCHED THEN UPDATE SET ssn = l.text WHEN NOT MATCHED THEN INSERT (id, ssn) VALUES (l.id, l.text)
### ok
UPDATE directory SET name = 'x' WHERE id = 1
### masked-column
UPDATE directory SET name = 'x' WHERE number = 'SECRET-1'
### masked-column
UPDATE staff SET name = ssn
### masked-column
UPDATE staff SET name = staff.ssn
### masked-column
UPDATE public.staff SET name = public.staff.ssn
### masked-column
UPDATE staff SET ssn = ssn || 'x'
### masked-column
UPDATE staff SET name = 'x' WHERE ssn IS NOT NULL
### masked-column
UPDATE staff SET name = 'x' WHERE EXISTS (SELECT 1 FROM logs WHERE logs.text = staff.ssn)
### masked-column
UPDATE staff SET name = to_jsonb(staff)::text
### masked-column
UPDATE staff s SET name = (s).ssn
### masked-column
UPDATE staff s SET name = s.told
### masked-column
UPDATE staff s SET name = (s.to_jsonb)::text
### masked-column
UPDATE staff s SET name = told(s)
### masked-column
UPDATE staff SET name = 'x' RETURNING *
### masked-column
UPDATE staff SET name = 'x' RETURNING staff.*
### masked-column
UPDATE staff SET name = 'x' RETURNING staff
### masked-column
UPDATE staff SET name = 'x' RETURNING lower_ssn
### masked-column
UPDATE logs SET text = s.ssn FROM staff s
### masked-column
UPDATE logs SET text = x.v FROM (SELECT ssn AS v FROM staff) x
### masked-column
UPDATE logs SET text = (SELECT ssn FROM staff LIMIT 1)
### masked-column
UPDATE logs SET text = (SELECT row_to_json(s)::text FROM staff s LIMIT 1)
### masked-column
UPDATE logs SET text = (SELECT s.c FROM staff s (a, b, c) LIMIT 1)
### masked-column
UPDATE logs SET text = c FROM staff s (a, b, c)
### masked-column
UPDATE logs SET text = d FROM (staff s JOIN (SELECT id AS other FROM logs) l ON l.other = s.id) AS j (a, b, d)
### masked-column
DELETE FROM staff WHERE ssn > 'S'
### masked-column
DELETE FROM staff WHERE pay > (SELECT avg(id) FROM logs)
### masked-column
DELETE FROM logs USING staff s WHERE s.ssn = text
### masked-column
DELETE FROM staff RETURNING ssn
### masked-column
INSERT INTO logs (text) SELECT ssn FROM staff
### masked-column
INSERT INTO logs (id, text) SELECT n, v FROM (SELECT * FROM staff) x (n, k, v, a, b, c)
### masked-column
INSERT INTO tenants SELECT * FROM tenants
### masked-column
INSERT INTO tenants TABLE tenants
### masked-column
INSERT INTO staff (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = staff.ssn
### masked-column
INSERT INTO staff (id, ssn) VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = excluded.ssn
### masked-column
INSERT INTO staff (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = 'x' WHERE staff.ssn = 'SECRET-1'
### masked-column
INSERT INTO tenants (tenant, id, token) VALUES (1, 9, 'x') ON CONFLICT (token) DO NOTHING
### masked-column
INSERT INTO tenants (tenant, id, token) VALUES (1, 9, 'x') ON CONFLICT ON CONSTRAINT tenants_token_key DO NOTHING
### masked-column
INSERT INTO staff (id) VALUES (1) RETURNING upper(ssn)
### masked-column
MERGE INTO logs l USING staff s ON s.id = l.id WHEN MATCHED THEN UPDATE SET text = s.ssn
### masked-column
MERGE INTO staff s USING logs l ON s.ssn = l.text WHEN MATCHED THEN DELETE
### masked-column
WITH w AS (SELECT ssn AS x FROM staff) INSERT INTO logs (text) SELECT x FROM w
### masked-column
DELETE FROM filtered
### masked-column
DELETE FROM logs WHERE id IN (SELECT id FROM filtered)
