# why: idle
customers = await db_frame("SELECT id, name FROM customers ORDER BY id")
recent = await db_frame("SELECT DISTINCT customer_id FROM orders WHERE total > 900")
joined = customers.merge(recent, left_on="id", right_on="customer_id", how="left", indicator=True)
idle = joined[joined["_merge"] == "left_only"][["id", "name"]]
n = len(idle)
share = n / len(customers)
