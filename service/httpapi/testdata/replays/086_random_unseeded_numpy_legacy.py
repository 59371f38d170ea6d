import numpy as np

x = np.random.randn(1000)
y = 3 * x + np.random.normal(scale=0.5, size=1000)
slope, intercept = np.polyfit(x, y, 1)
print("slope", slope, "intercept", intercept)
print("corr", np.corrcoef(x, y)[0, 1])
np.random.choice(["red", "green", "blue"], size=6, p=[.5, .3, .2])
