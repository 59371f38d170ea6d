import matplotlib.pyplot as plt
import numpy as np
fig = plt.figure(figsize=(2, 2), dpi=50)
ax = fig.add_axes([0, 0, 1, 1])
ax.fill_between([0, 1, 2], [0, 2, 1], color="teal")
ax.axis("off")
fig.canvas.draw()
px = np.asarray(fig.canvas.buffer_rgba())
print(px.shape, px.sum(dtype=int))
plt.close(fig)
px[25, 25]
