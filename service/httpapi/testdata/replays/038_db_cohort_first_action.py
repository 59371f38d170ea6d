import pandas as pd
a = await db_frame("SELECT user_id, timestamp::date AS day FROM user_activities")
first = a.groupby("user_id").day.min().rename("cohort")
a = a.join(first, on="user_id")
a["week"] = (a.day - a.cohort).dt.days // 7
a["cohort_week"] = a.cohort.dt.to_period("W").astype(str)
ret = a.groupby(["cohort_week", "week"]).user_id.nunique().unstack(fill_value=0)
print(ret.iloc[:6, :6])
(ret.div(ret[0], axis=0).iloc[0] if 0 in ret else ret).round(3)
