rows = await db_query("""
WITH RECURSIVE fib(i, a, b) AS (
  SELECT 1, 0::numeric, 1::numeric UNION ALL SELECT i + 1, b, a + b FROM fib WHERE i < :n
) SELECT i, a FROM fib
""", {"n": 60})
print([int(r["a"]) for r in rows[-3:]])
sum(r["a"] for r in rows)
