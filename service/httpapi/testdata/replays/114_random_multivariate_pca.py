import numpy as np
cov = [[2.0, 1.2, 0.3], [1.2, 1.0, 0.2], [0.3, 0.2, 0.5]]
X = np.random.default_rng().multivariate_normal([0, 0, 0], cov, size=400)
Xc = X - X.mean(0)
vals, vecs = np.linalg.eigh(np.cov(Xc.T))
order = vals.argsort()[::-1]
print("explained", vals[order] / vals.sum())
print("components\n", vecs[:, order])
scores = Xc @ vecs[:, order[:2]]
scores[:3]
