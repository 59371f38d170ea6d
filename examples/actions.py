# Run it with: bin/glasshouse run --out . examples/actions.py
import matplotlib.pyplot as plt

rows = await db_query("SELECT action, count(*) AS n FROM user_activities GROUP BY action ORDER BY n DESC")
plt.bar([row["action"] for row in rows], [row["n"] for row in rows])
plt.title("Actions of users")
plt.show()
print(f"{sum(row['n'] for row in rows)} actions of {len(rows)} kinds")
