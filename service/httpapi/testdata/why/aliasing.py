# why: prices
# line: 9
# words: prices; changed in place through discounted
# Both names are of one list.
rows = db_query("SELECT price::float AS price FROM products ORDER BY id LIMIT 4")
prices = [row["price"] for row in rows]
discounted = prices
for i in range(len(discounted)):
    discounted[i] = discounted[i] * 0.9
average = sum(prices) / len(prices)
