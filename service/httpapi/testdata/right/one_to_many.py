# why: by_city
customers = await db_frame("SELECT id, city FROM customers WHERE city IS NOT NULL")
orders = await db_frame("SELECT id AS order_id, customer_id, total::float AS total FROM orders WHERE status = 'paid'")
merged = customers.merge(orders, left_on="id", right_on="customer_id")
by_city = merged.groupby("city")["total"].sum().sort_values(ascending=False)
top = by_city.index[0]
share = by_city.iloc[0] / by_city.sum()
rounded = round(share * 100, 1)
