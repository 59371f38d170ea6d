# why: per_day
# line: 6
# words: fraction; rest
# // drops the fraction.
count = db_query("SELECT count(*) AS n FROM orders WHERE id <= 1003")[0]["n"]
per_day = count // 365
