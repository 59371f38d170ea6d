import random
random.seed(7)
MASK = (1 << 32) - 1
coefs = [(random.getrandbits(32), random.getrandbits(32)) for _ in range(16)]
def sig(tokens):
    return [min(((a * (hash(t) & MASK) + b) & MASK) for t in tokens) for a, b in coefs]
d1 = sig("the cat sat on the mat today".split())
d2 = sig("the cat sat on a mat yesterday".split())
print(d1[:4])
print("estimate", sum(x == y for x, y in zip(d1, d2)) / 16)
