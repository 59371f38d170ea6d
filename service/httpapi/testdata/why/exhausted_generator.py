# why: share
# line: 8
# words: generator; line 7; nothing was left
# The first sum uses the generator up, so the second one is 0.
rows = db_query("SELECT total::float AS total FROM orders ORDER BY id LIMIT 20")
totals = (row["total"] for row in rows)
whole = sum(totals)
large = sum(t for t in totals if t > 100)
share = large / whole
