# why: average
# line: 7
# words: computed from 245 values; rows: orders 500 -> 245
# A customer with one order counts as much as one with ten.
orders = db_frame("SELECT customer_id, total::float AS total FROM orders ORDER BY id LIMIT 500")
per_customer = orders.groupby("customer_id")["total"].mean()
average = per_customer.mean()
