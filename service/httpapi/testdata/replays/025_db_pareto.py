orders = await db_frame("SELECT customer_id, sum(total)::float AS revenue FROM orders GROUP BY customer_id")
orders = orders.sort_values("revenue", ascending=False).reset_index(drop=True)
orders["cum"] = orders.revenue.cumsum() / orders.revenue.sum()
n80 = int((orders.cum < 0.8).sum()) + 1
print(f"{n80} of {len(orders)} customers ({n80 / len(orders):.1%}) make 80 % of the revenue")
print(orders.iloc[[0, 1, 2, -1]])
gini = 1 - 2 * (orders.revenue.sort_values().cumsum() / orders.revenue.sum()).mean()
round(gini, 4)
