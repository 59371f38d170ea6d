r = (await db_query("""
SELECT 1.50::numeric AS n, 2.5::float8 AS f, 9223372036854775807 AS big, true AS b, NULL::text AS nul,
  '2024-05-01 12:00+02'::timestamptz AS tz, '2024-05-01'::date AS d, '12:34:56.789'::time AS t,
  '3 days 04:05'::interval AS iv, ARRAY[1,2,3] AS arr, '{"a": {"b": 1}}'::jsonb AS j, int4range(1, 5) AS rg,
  '10.0.0.1'::inet AS ip, 'deadbeef'::bytea AS by, '6f1b0c1e-0000-4000-8000-000000000001'::uuid AS u
"""))[0]
for k, v in r.items():
    print(f"{k:<4} {type(v).__module__}.{type(v).__name__:<12} {v!r}")
