import matplotlib.pyplot as plt
from pathlib import Path
rows = await db_query("SELECT city, count(*) AS n FROM customers GROUP BY city")
fig, ax = plt.subplots()
ax.bar([r["city"] for r in rows], [r["n"] for r in rows])
ax.set_title("customers by city, " + datetime.now().strftime("%d.%m.%Y %H:%M:%S"))
Path("artifacts").mkdir(exist_ok=True)
fig.savefig("artifacts/cities.png", dpi=60)
fig.savefig("artifacts/cities.svg")
[(p.name, p.stat().st_size > 1000) for p in sorted(Path("artifacts").iterdir())]
