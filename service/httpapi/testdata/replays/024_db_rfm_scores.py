import pandas as pd
df = await db_frame("""
SELECT o.customer_id, count(*) AS freq, sum(o.total)::float AS money, max(o.id) AS latest
FROM orders o GROUP BY o.customer_id
""")
for col in ("freq", "money", "latest"):
    df[col[0].upper()] = pd.qcut(df[col].rank(method="first"), 4, labels=[1, 2, 3, 4]).astype(int)
df["score"] = df.F * 100 + df.M * 10 + df.L
print(df.nlargest(5, "score")[["customer_id", "freq", "money", "score"]])
df.score.value_counts().sort_index(ascending=False).head(6)
