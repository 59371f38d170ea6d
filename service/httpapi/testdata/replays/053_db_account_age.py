import pandas as pd
u = await db_frame("SELECT id, plan, created_at, active FROM users")
u["age_days"] = (pd.Timestamp.now(tz="UTC") - u.created_at).dt.total_seconds() / 86400
print(u.groupby(["plan", "active"]).age_days.mean().unstack().round(5))
newest = u.loc[u.age_days.idxmin()]
print(newest)
recent = await db_query("SELECT count(*) AS n FROM users WHERE created_at > now() - interval '300 days'")
recent[0]["n"], int((u.age_days < 300).sum())
