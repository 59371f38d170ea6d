import numpy as np

control = np.array([0.22, 0.35, 0.31, 0.29, 0.40, 0.19, 0.33])
treated = np.array([0.41, 0.38, 0.45, 0.30, 0.52, 0.36, 0.49])
obs = treated.mean() - control.mean()
pool = np.concatenate([control, treated])
count = 0
N = 3000
for _ in range(N):
    np.random.shuffle(pool)
    if pool[:7].mean() - pool[7:].mean() >= obs:
        count += 1
print("observed diff:", obs)
print("p-value:", (count + 1) / (N + 1))
