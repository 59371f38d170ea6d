# why: total
# line: 10
# words: ValueError; caught and ignored
# Contents that are not numbers are left out in silence.
rows = db_query("SELECT content FROM raw_data ORDER BY id LIMIT 24")
total = 0.0
for row in rows:
    parts = (row["content"] or "").split(";")
    try:
        total += float(parts[-1])
    except ValueError:
        pass
