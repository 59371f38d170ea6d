before = (await db_query("SELECT count(*) AS n FROM orders"))[0]["n"]
print("before", before)
changed = await db_query("UPDATE orders SET status = 'lost' WHERE id = :id", {"id": 1})
after = (await db_query("SELECT count(*) AS n FROM orders WHERE status = 'lost'"))[0]["n"]
print(changed, after)
