# why: best
import pandas as pd
sales = pd.DataFrame({"month": pd.period_range("2024-01", periods=8, freq="M").astype(str),
                      "revenue": [100, 120, 90, 110, 130, 150, 140, 160]})
sales["previous"] = sales["revenue"].shift(1)
sales["growth"] = sales["revenue"].pct_change() * 100
sales["avg3"] = sales["revenue"].rolling(3).mean()
known = sales.dropna(subset=["growth"])
best = known.loc[known["growth"].idxmax(), "month"]
