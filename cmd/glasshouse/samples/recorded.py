# A recorded run: its average is wrong, and no error says so. Ask why `average` has its value.
rows = db_query("SELECT action, duration_ms FROM user_activities ORDER BY id LIMIT 400")


def seconds(row):
    return (row["duration_ms"] or 0) / 1000


total = 0.0
for row in rows:
    total += seconds(row)
average = total / len(rows)
print(f"average: {average:.3f} s over {len(rows)} actions")
average
