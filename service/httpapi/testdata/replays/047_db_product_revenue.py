import pandas as pd
items = await db_frame("SELECT order_id, product_id, quantity, unit_price::float AS unit_price FROM order_items")
products = await db_frame("SELECT id AS product_id, name, price::float AS price FROM products")
items["revenue"] = items.quantity * items.unit_price
top = (items.merge(products, on="product_id")
            .groupby("name", as_index=False)
            .agg(units=("quantity", "sum"), revenue=("revenue", "sum"))
            .nlargest(10, "revenue"))
print(top.to_string(index=False))
discount = items.merge(products, on="product_id").eval("1 - unit_price / price")
discount.describe().round(4)
