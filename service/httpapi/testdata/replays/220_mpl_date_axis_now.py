import matplotlib.pyplot as plt, matplotlib.dates as mdates
from datetime import datetime, timedelta
import random
xs = [datetime.now() - timedelta(hours=h) for h in range(24, 0, -1)]
ys = [random.gauss(20, 2) for _ in xs]
fig, ax = plt.subplots(figsize=(6, 2.5))
ax.plot(xs, ys, "o-")
ax.xaxis.set_major_formatter(mdates.DateFormatter("%H:%M"))
ax.annotate("max", (xs[ys.index(max(ys))], max(ys)))
fig.autofmt_xdate()
plt.show()
print(max(ys), [t.get_text() for t in ax.get_xticklabels()][:3])
