# why: leaders
# line: 6
# words: not stable; plan
# Users of one plan have no fixed order.
users = db_frame("SELECT id, name, plan FROM users ORDER BY id LIMIT 60")
ranked = users.sort_values("plan")
leaders = ranked.head(3)["name"].tolist()
