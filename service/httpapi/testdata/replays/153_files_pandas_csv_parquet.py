import pandas as pd
import numpy as np

df = pd.DataFrame({"ts": pd.date_range("2025-01-01", periods=6, freq="D"), "v": np.random.default_rng(3).normal(size=6).round(4)})
df.to_csv("series.csv", index=False)
print(open("series.csv").read())
back = pd.read_csv("series.csv", parse_dates=["ts"])
print(back.dtypes)
df.to_parquet("series.parquet")
pq = pd.read_parquet("series.parquet")
print(pq.equals(df))
back.set_index("ts").v.rolling(3).mean()
