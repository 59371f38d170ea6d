import numpy as np
d = await db_frame("SELECT action, duration_ms FROM user_activities WHERE duration_ms IS NOT NULL")
p = d.groupby("action").duration_ms.quantile([.5, .9, .99]).unstack()
p.columns = ["p50", "p90", "p99"]
print(p.sort_values("p99", ascending=False))
sql = await db_query("SELECT action, percentile_cont(0.9) WITHIN GROUP (ORDER BY duration_ms) AS p90 FROM user_activities GROUP BY action")
diff = {r["action"]: float(r["p90"]) - p.p90[r["action"]] for r in sql}
diff
