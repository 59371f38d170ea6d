# why: paid
# line: 5
# words: query 1; as many as its LIMIT; there may be more
# There are more orders than the query returns.
orders = db_frame("SELECT id, status, total::float AS total FROM orders ORDER BY id LIMIT 100")
paid = orders[orders["status"] == "paid"]["total"].sum()
