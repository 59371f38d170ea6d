# why: revenue
# line: 6
# words: keeps the first row of each customer_id; drops 255 of 500 rows
# The other orders of a customer are dropped.
orders = db_frame("SELECT customer_id, total::float AS total FROM orders ORDER BY id LIMIT 500")
customers = orders.drop_duplicates("customer_id")
revenue = customers["total"].sum()
