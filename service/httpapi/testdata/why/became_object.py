# why: highest
# line: 7
# words: amount; text
# One text makes the whole column text, so the maximum is that of the alphabet.
frame = db_frame("SELECT id, total::float AS amount FROM orders ORDER BY id LIMIT 30")
frame["amount"] = frame["amount"].round(2).astype(str)
highest = frame["amount"].max()
