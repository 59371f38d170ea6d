rows = await db_query("""
SELECT width_bucket(total::float, 0, 1000, 10) AS bucket, count(*) AS n, min(total) AS lo, max(total) AS hi
FROM orders GROUP BY 1 ORDER BY 1
""")
top = max(r["n"] for r in rows)
for r in rows:
    print(f"{r['bucket']:>3} {str(r['lo']):>9}..{str(r['hi']):<9} {'*' * round(40 * r['n'] / top)}")
