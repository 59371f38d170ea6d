import matplotlib.pyplot as plt
from matplotlib.animation import FuncAnimation
import numpy as np, hashlib
from pathlib import Path
fig, ax = plt.subplots(figsize=(2, 2))
line, = ax.plot([], [])
ax.set_xlim(0, 6); ax.set_ylim(-1, 1)
x = np.linspace(0, 6, 60)
def update(i):
    line.set_data(x, np.sin(x + i))
    return line,
a = FuncAnimation(fig, update, frames=4)
a.save("wave.gif", writer="pillow", fps=5)
plt.close(fig)
print(Path("wave.gif").stat().st_size, hashlib.sha1(Path("wave.gif").read_bytes()).hexdigest())
