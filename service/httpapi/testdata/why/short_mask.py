# why: paid
# line: 8
# words: stops at the shortest; 30; 25
# The mask is shorter than the list, so the last orders are left out.
orders = db_query("SELECT id, total::float AS total FROM orders ORDER BY id LIMIT 30")
states = db_query("SELECT status FROM orders ORDER BY id LIMIT 25")
mask = [row["status"] == "paid" for row in states]
paid = [order["id"] for order, keep in zip(orders, mask) if keep]
