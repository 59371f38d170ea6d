# why: mean
# line: 6
# words: 10 missing; duration_ms
# The rows without a duration count in the divisor, and not in the sum.
rows = db_frame("SELECT id, action, duration_ms FROM user_activities ORDER BY id LIMIT 70")
total = rows["duration_ms"].sum()
mean = total / len(rows)
