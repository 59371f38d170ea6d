# The ten most active users of the last seven days
import pandas as pd

rows = await db_query("""
    SELECT user_id, action, count(*) AS n FROM user_activities
    WHERE timestamp > now() - interval '7 days' GROUP BY user_id, action""")
df = pd.DataFrame(rows)
top = df.groupby("user_id")["n"].sum().nlargest(10)
debug("computed", data={"users": len(df)})
__result__ = top.to_dict()
