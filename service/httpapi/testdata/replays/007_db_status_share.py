orders = db_frame("SELECT status, total::float AS total FROM orders")
share = orders.groupby("status").total.sum() / orders.total.sum()
for s, v in share.sort_values(ascending=False).items():
    print(f"{s:<12}{v:7.2%} {'▇' * int(v * 40)}")
orders.groupby("status").total.describe().round(1)
