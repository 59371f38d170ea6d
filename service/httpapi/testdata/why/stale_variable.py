# why: gross
# before: rate = 0.07
# line: 0
# words: rate was not set in this run; 0.07; execution
# The rate comes from an earlier run of the session.
rows = db_query("SELECT total::float AS total FROM orders ORDER BY id LIMIT 5")
net = sum(row["total"] for row in rows)
gross = net * (1 + rate)
