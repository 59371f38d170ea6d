# why: paid
# line: 8
# words: was true 11 of 25 times; 30 rows
# The mask is shorter than the list, so the last orders are left out.
orders = db_query("SELECT id, total::float AS total FROM orders ORDER BY id LIMIT 30")
states = db_query("SELECT status FROM orders ORDER BY id LIMIT 25")
mask = [row["status"] == "paid" for row in states]
paid = [order["id"] for order, keep in zip(orders, mask) if keep]
