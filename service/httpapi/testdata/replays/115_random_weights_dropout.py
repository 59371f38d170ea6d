import numpy as np

rs = np.random.RandomState()
W1, W2 = rs.randn(2, 8) * .7, rs.randn(8, 1) * .7
X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
y = np.array([[0], [1], [1], [0]], float)
losses = []
for epoch in range(800):
    h = np.tanh(X @ W1)
    mask = rs.binomial(1, .9, h.shape)
    p = 1 / (1 + np.exp(-(h * mask) @ W2))
    losses.append(float(((p - y) ** 2).mean()))
    g = (p - y) * p * (1 - p)
    dW2 = (h * mask).T @ g
    dW1 = X.T @ ((g @ W2.T) * mask * (1 - h ** 2))
    W2 -= .8 * dW2
    W1 -= .8 * dW1
print("loss", losses[0], "->", losses[-1])
(1 / (1 + np.exp(-np.tanh(X @ W1) @ W2))).round(3).ravel()
