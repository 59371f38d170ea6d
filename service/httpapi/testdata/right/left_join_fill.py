# why: report
import pandas as pd
customers = await db_frame("SELECT id AS customer_id, name, city FROM customers ORDER BY id")
orders = await db_frame("SELECT customer_id, total::float AS total FROM orders")
spent = orders.groupby("customer_id", as_index=False)["total"].sum()
report = customers.merge(spent, on="customer_id", how="left")
report["total"] = report["total"].fillna(0)
report = report.sort_values("total", ascending=False, kind="stable").head(10)
top = report.iloc[0]["name"]
