import pandas as pd
o = await db_frame("SELECT ordered_at, total::float AS total, status FROM orders WHERE status <> 'cancelled'")
m = o.set_index("ordered_at").total.resample("MS").agg(["sum", "count"])
m["growth_%"] = m["sum"].pct_change().mul(100).round(1)
print(m)
this_month = pd.Timestamp.now(tz="UTC").strftime("%Y-%m")
print("current month", this_month, "so far:", m.loc[this_month, "sum"].tolist() if this_month in m.index.strftime("%Y-%m") else "nothing")
