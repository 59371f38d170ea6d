# why: total
# line: 7
# words: many-to-many; multiplied
# Both sides have many rows of a customer.
orders = db_frame("SELECT customer_id, total::float AS total FROM orders ORDER BY id LIMIT 500")
visits = db_frame("SELECT 1 + id % 300 AS customer_id, action FROM user_activities ORDER BY id LIMIT 700")
merged = orders.merge(visits, on="customer_id")
total = merged["total"].sum()
