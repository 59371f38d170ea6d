# why: growth
# line: 8
# words: len(totals): 6; totals[i]: 4 values
# The last pair is never compared.
rows = db_query("SELECT total::float AS total FROM orders ORDER BY id LIMIT 6")
totals = [row["total"] for row in rows]
growth = []
for i in range(1, len(totals) - 1):
    growth.append(totals[i] - totals[i - 1])
