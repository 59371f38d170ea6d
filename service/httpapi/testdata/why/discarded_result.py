# why: count
# line: 6
# words: new object; rows did not change
# dropna returns a new frame.
rows = db_frame("SELECT id, duration_ms FROM user_activities ORDER BY id LIMIT 40")
rows.dropna()
count = len(rows)
