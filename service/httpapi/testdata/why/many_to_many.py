# why: total
# line: 7
# words: 500 and 700 rows -> 1171: rows were multiplied
# Both sides have many rows of a customer.
orders = await db_frame("SELECT customer_id, total::float AS total FROM orders ORDER BY id LIMIT 500")
visits = await db_frame("SELECT 1 + id % 300 AS customer_id, action FROM user_activities ORDER BY id LIMIT 700")
merged = orders.merge(visits, on="customer_id")
total = merged["total"].sum()
