# why: total
# line: 6
# words: copy; orders did not change; loc
# The assignment changes a copy.
orders = db_frame("SELECT id, status, total::float AS total FROM orders ORDER BY id LIMIT 40")
orders[orders["status"] == "cancelled"]["total"] = 0
total = orders["total"].sum()
