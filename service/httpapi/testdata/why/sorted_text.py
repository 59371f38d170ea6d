# why: median
# line: 6
# words: compares text, not numbers; total are strings
# The totals are texts, so '98.10' is behind '1024.40'.
orders = db_frame("SELECT id, total::text AS total FROM orders ORDER BY id LIMIT 31")
ordered = orders.sort_values("total")
median = ordered["total"].iloc[15]
