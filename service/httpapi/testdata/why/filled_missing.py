# why: mean
# line: 6
# words: 11 of 80 values were missing (NaN) and became 0
# A duration that nobody measured counts as 0.
rows = db_frame("SELECT id, duration_ms FROM user_activities ORDER BY id LIMIT 80")
rows["duration_ms"] = rows["duration_ms"].fillna(0)
mean = rows["duration_ms"].mean()
