import asyncio, time
t = time.perf_counter()
users, orders, items = await asyncio.gather(
    db_frame("SELECT * FROM users"), db_frame("SELECT * FROM orders"), db_frame("SELECT * FROM order_items"))
print(users.shape, orders.shape, items.shape)
print("loaded in %.1f ms" % ((time.perf_counter() - t) * 1000))
print(items.memory_usage(deep=True).sum(), users.dtypes.astype(str).to_dict())
check = items.assign(r=items.quantity * items.unit_price).groupby("order_id").r.sum().round(2)
m = orders.set_index("id").total
(m.reindex(check.index) - check).abs().max()
