# why: count
# line: 6
# words: (100 & orders['customer_id']); binds more tightly
# The amounts are compared with 100 & customer_id.
orders = db_frame("SELECT id, customer_id, total::float AS total FROM orders ORDER BY id LIMIT 100")
large = orders[orders["total"] > 100 & orders["customer_id"]]
count = len(large)
