# why: revenue
# line: 7
# words: 390 of 400 rows matched nothing in customers (on='id')
# The id of an order is not the id of its customer.
orders = await db_frame("SELECT id, customer_id, total::float AS total FROM orders WHERE id>290 ORDER BY id LIMIT 400")
customers = await db_frame("SELECT id, city FROM customers")
merged = orders.merge(customers, on="id", how="left")
revenue = merged.groupby("city")["total"].sum().sum()
