import numpy as np, matplotlib.pyplot as plt
rng = np.random.default_rng(11)
m = rng.integers(0, 50, (4, 6))
fig, ax = plt.subplots()
im = ax.imshow(m, cmap="Blues")
for (i, j), v in np.ndenumerate(m):
    ax.text(j, i, v, ha="center", va="center", color="white" if v > 25 else "black")
ax.set_yticks(range(4), ["Q1", "Q2", "Q3", "Q4"])
plt.colorbar(im)
fig
