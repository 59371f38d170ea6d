# why: count
# line: 6
# words: equal keys; last item
# Users of one country replace one another.
users = db_query("SELECT name, country FROM users ORDER BY id LIMIT 50")
by_country = {user["country"]: user["name"] for user in users}
count = len(by_country)
