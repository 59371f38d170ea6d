sample = await db_frame("SELECT id, customer_id, total FROM orders ORDER BY random() LIMIT 10")
print(sample)
est = sample.total.mean()
true = (await db_query("SELECT avg(total)::float AS m FROM orders"))[0]["m"]
print(f"estimate {est:.2f} true {true:.2f} error {100 * (est / true - 1):+.1f} %")
