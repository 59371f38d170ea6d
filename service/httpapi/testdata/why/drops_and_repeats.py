# why: total
# line: 7
# words: 40 rows -> 40; the right table repeats 1 value of customer_id
# Orders without an address are dropped, and as many are repeated for customers with two addresses.
orders = await db_frame("SELECT id, 1 + id % 4 AS customer_id, total::float AS total FROM orders ORDER BY id LIMIT 40")
addresses = await db_frame("SELECT unnest(ARRAY[1, 1, 2, 4]) AS customer_id, 'no. ' || generate_series(1, 4) AS street")
merged = orders.merge(addresses, on="customer_id")
total = merged["total"].sum()
