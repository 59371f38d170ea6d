import io, hashlib
import matplotlib.pyplot as plt
from datetime import datetime
fig, ax = plt.subplots(figsize=(3, 2), dpi=80)
ax.plot([1, 2, 3], [2, 5, 3], marker="o")
ax.set_xlabel(datetime.now().strftime("created %H:%M:%S"))
b = io.BytesIO()
fig.savefig(b, format="png")
print(b.getvalue()[:8], len(b.getvalue()))
print(hashlib.md5(b.getvalue()).hexdigest())
