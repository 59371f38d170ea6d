# why: total
# line: 5
# words: query 1; 0 rows
# The state is written in capitals, so no row fits.
rows = db_query("SELECT total::float AS total FROM orders WHERE status = 'Paid'")
total = sum(row["total"] for row in rows)
