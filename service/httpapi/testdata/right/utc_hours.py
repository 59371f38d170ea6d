# why: busiest
events = await db_frame("SELECT id, status, ordered_at FROM orders ORDER BY id LIMIT 500")
events["hour"] = events["ordered_at"].dt.hour
events["day"] = events["ordered_at"].dt.date
per_hour = events.groupby("hour").size()
busiest = int(per_hour.idxmax())
quiet = [h for h in range(24) if h not in per_hour.index]
n = len(events)
