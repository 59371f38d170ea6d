import numpy as np
import pandas as pd

np.random.seed()
visitors = 5000
group = np.random.choice(["A", "B"], visitors)
p = np.where(group == "A", 0.10, 0.115)
conv = np.random.binomial(1, p)
df = pd.DataFrame({"group": group, "conv": conv})
summary = df.groupby("group").conv.agg(["count", "sum", "mean"])
print(summary)
pa, pb = summary["mean"]
se = np.sqrt(sum(m * (1 - m) / c for m, c in zip(summary["mean"], summary["count"])))
print("lift %.2f%%  z=%.3f" % ((pb / pa - 1) * 100, (pb - pa) / se))
