# why: change
# line: 8
# words: i = -1
# The day before the first is the last one.
rows = db_query("SELECT total::float AS total FROM orders ORDER BY id LIMIT 6")
totals = [row["total"] for row in rows]
i = 0 - 1
before = totals[i]
change = totals[0] - before
