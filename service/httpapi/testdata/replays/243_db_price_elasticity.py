import numpy as np
import pandas as pd

items = await db_frame("""
    SELECT oi.product_id, oi.quantity, oi.unit_price::float AS paid, p.price::float AS list, o.ordered_at
    FROM order_items oi JOIN products p ON p.id = oi.product_id JOIN orders o ON o.id = oi.order_id
    WHERE o.status <> 'cancelled'
""")
g = items.groupby("product_id").agg(units=("quantity", "sum"), price=("list", "first"))

X = np.column_stack([np.ones(len(g)), np.log(g.price)])
y = np.log(g.units)


def ols(X, y):
    beta, *_ = np.linalg.lstsq(X, y, rcond=None)
    resid = y - X @ beta
    return beta, resid


beta, resid = ols(X, y)
print(f"elasticity {beta[1]:+.5f}, intercept {beta[0]:.5f}")
print(f"R2 {1 - resid.var() / np.var(y):.5f}")

# bootstrap over products
rng = np.random.default_rng()
draws = []
for _ in range(500):
    i = rng.integers(0, len(g), len(g))
    draws.append(ols(X[i], y.to_numpy()[i])[0][1])
lo, mid, hi = np.quantile(draws, [.05, .5, .95])
print(f"bootstrap 90 % interval [{lo:.4f}, {hi:.4f}], median {mid:.4f}")

# a placebo: prices shuffled among the products
placebo = []
for _ in range(300):
    Xs = X.copy()
    rng.shuffle(Xs[:, 1])
    placebo.append(ols(Xs, y)[0][1])
p = (np.abs(placebo) >= abs(beta[1])).mean()
print("placebo p-value", p)

order = items.ordered_at.dt.strftime("%Y-%m")
monthly = items.groupby(order).quantity.sum()
monthly.tail(4)
