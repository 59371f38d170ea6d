# why: count
# line: 7
# words: none of the 100 rows of users are left
# The countries are written with a capital letter.
users = db_frame("SELECT id, name, country FROM users ORDER BY id LIMIT 100")
wanted = ["france", "japan"]
picked = users[users["country"].isin(wanted)]
count = len(picked)
