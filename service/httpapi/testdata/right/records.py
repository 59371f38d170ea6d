# why: grand
rows = db_query("SELECT order_id, product_id, quantity, unit_price::float AS unit_price FROM order_items ORDER BY order_id, line LIMIT 300")
lines = [dict(r) for r in rows]
for line in lines:
    line["amount"] = line["quantity"] * line["unit_price"]
    if line["quantity"] >= 3:
        line["amount"] *= 0.95
grand = round(sum(line["amount"] for line in lines), 2)
count = len(lines)
average = grand / count if count else 0
