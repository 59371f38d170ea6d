import pandas as pd
raw = await db_query("SELECT id, content FROM raw_data")
good, bad = [], []
for r in raw:
    try:
        parts = r["content"].split(";")
        good.append({"id": int(parts[0]), "city": parts[1].strip(), "amount": float(parts[2])})
    except (ValueError, IndexError, AttributeError) as e:
        bad.append((r["id"], r["content"], f"{type(e).__name__}: {e}"))
df = pd.DataFrame(good)
print(len(good), "good", len(bad), "bad", bad[:3])
df.groupby("city").amount.agg(["size", "sum", "mean"]).round(2)
