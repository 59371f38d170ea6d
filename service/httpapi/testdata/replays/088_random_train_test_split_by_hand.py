import numpy as np
import pandas as pd

rng = np.random.default_rng()
n = 300
df = pd.DataFrame({"x1": rng.normal(size=n), "x2": rng.uniform(-1, 1, n)})
df["label"] = (df.x1 + 2 * df.x2 + rng.normal(scale=.3, size=n) > 0).astype(int)

perm = rng.permutation(n)
cut = int(n * .8)
train, test = df.iloc[perm[:cut]], df.iloc[perm[cut:]]

# nearest centroid
centroids = train.groupby("label")[["x1", "x2"]].mean()
d = ((test[["x1", "x2"]].to_numpy()[:, None, :] - centroids.to_numpy()[None]) ** 2).sum(-1)
pred = centroids.index.to_numpy()[d.argmin(1)]
print(centroids)
print("accuracy", (pred == test.label).mean())
print("first test rows", list(test.index[:8]))
