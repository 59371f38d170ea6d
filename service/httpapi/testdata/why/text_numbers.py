# why: highest
# line: 7
# words: compares text; strings
# The prices are texts, so '9.10' is more than '10.20'.
rows = db_query("SELECT split_part(content, ';', 3) AS price FROM raw_data WHERE content IS NOT NULL ORDER BY id LIMIT 9")
prices = [row["price"] for row in rows]
highest = max(prices)
