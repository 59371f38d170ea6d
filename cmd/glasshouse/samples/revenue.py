# Revenue by city, as a table and a figure.
import matplotlib.pyplot as plt

orders = db_frame("""
    SELECT c.city, sum(o.total)::float AS revenue, count(*) AS orders
    FROM orders o JOIN customers c ON c.id = o.customer_id
    WHERE o.status <> 'cancelled'
    GROUP BY c.city ORDER BY revenue DESC
""")
debug(f"{len(orders)} cities")
inspect_var("orders", orders)
orders.plot.bar(x="city", y="revenue", legend=False, ylabel="revenue in euros")
plt.tight_layout()
plt.show()
orders.to_csv("artifacts/revenue.csv", index=False)
orders
