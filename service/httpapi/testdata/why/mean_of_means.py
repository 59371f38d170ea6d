# why: average
# line: 7
# words: mean of the means of 245 groups; 500 rows
# A customer with one order counts as much as one with ten.
orders = db_frame("SELECT customer_id, total::float AS total FROM orders ORDER BY id LIMIT 500")
per_customer = orders.groupby("customer_id")["total"].mean()
average = per_customer.mean()
