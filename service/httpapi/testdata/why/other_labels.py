# why: total
# line: 7
# words: matched by label (index), not by position: 1 of 40 labels
# The labels were made anew, so each value is in the row of another order.
orders = await db_frame("SELECT id, total::float AS total FROM orders ORDER BY id LIMIT 40")
large = orders[orders["total"] > 200].reset_index(drop=True)
orders["large"] = large["total"]
total = orders["large"].sum()
