# why: revenue
# line: 10
# words: rates has no key 'usd'; default 1.0
# The keys of the rates are written in capitals.
rows = db_query("SELECT total::float AS total, id % 2 AS odd FROM orders ORDER BY id LIMIT 12")
rates = {"USD": 0.92, "EUR": 1.0}
revenue = 0.0
for row in rows:
    currency = "usd" if row["odd"] else "EUR"
    revenue += row["total"] * rates.get(currency, 1.0)
