view = await db_frame("SELECT * FROM customer_revenue")
manual = await db_frame("SELECT customer_id AS id, sum(total) AS revenue, count(*) AS orders FROM orders GROUP BY customer_id")
m = view.merge(manual, on="id", how="outer", suffixes=("_v", "_m"), indicator=True)
print(m._merge.value_counts())
m["diff"] = m.revenue_v - m.revenue_m
print(m.loc[m["diff"].abs() > .005, ["id", "revenue_v", "revenue_m", "orders_v", "orders_m"]].head())
m["diff"].describe()
