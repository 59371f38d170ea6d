# why: per_day
# line: 6
# words: time zone; UTC
# The days are those of UTC, not of the shop.
orders = db_frame("SELECT id, ordered_at FROM orders ORDER BY id LIMIT 50")
orders["day"] = orders["ordered_at"].dt.date
per_day = orders.groupby("day")["id"].count().max()
