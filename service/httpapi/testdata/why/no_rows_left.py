# why: count
# line: 7
# words: 100 rows -> 0: 100 were left out
# The countries are written with a capital letter.
users = await db_frame("SELECT id, name, country FROM users ORDER BY id LIMIT 100")
wanted = ["france", "japan"]
picked = users[users["country"].isin(wanted)]
count = len(picked)
