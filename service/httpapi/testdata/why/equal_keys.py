# why: count
# line: 6
# words: 50 pairs had only 9 different keys
# Users of one country replace one another.
users = db_query("SELECT name, country FROM users ORDER BY id LIMIT 50")
by_country = {user["country"]: user["name"] for user in users}
count = len(by_country)
