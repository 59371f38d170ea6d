rows = await db_query("""
SELECT country, array_agg(DISTINCT plan) AS plans, string_agg(id::text, ',' ORDER BY id) AS ids, count(*) AS n
FROM users GROUP BY country
""")
for r in rows:
    ids = r["ids"].split(",")
    print(r["country"], r["plans"], r["n"], ids[:3], "..." if len(ids) > 3 else "")
type(rows), getattr(rows, "truncated", None)
