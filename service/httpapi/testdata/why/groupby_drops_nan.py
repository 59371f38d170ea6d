# why: total
# line: 6
# words: leaves out; parent_id; missing
# Categories without a parent are in no group.
rows = db_frame("SELECT c.parent_id, a.views FROM articles a RIGHT JOIN categories c ON c.id = a.category_id")
groups = rows.groupby("parent_id")["views"].count()
total = groups.sum()
