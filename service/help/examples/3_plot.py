# A plot: open figures are returned as images
import matplotlib.pyplot as plt

rows = await db_query("SELECT date_trunc('day', timestamp)::date AS day, count(*) AS n FROM user_activities GROUP BY 1 ORDER BY 1")
plt.plot([r["day"] for r in rows], [r["n"] for r in rows])
plt.title("Activities per day")
__result__ = {"days": len(rows)}
