# why: mean
# line: 5
# words: in place of missing ones; coalesce(duration_ms, -1)
# A duration that nobody measured counts as -1.
rows = db_query("SELECT coalesce(duration_ms, -1) AS duration FROM user_activities ORDER BY id LIMIT 50")
durations = [row["duration"] for row in rows]
mean = sum(durations) / len(durations)
