import random

def estimate(n):
    inside = 0
    for _ in range(n):
        x, y = random.random(), random.random()
        inside += x * x + y * y <= 1
    return 4 * inside / n

for n in (100, 1000, 10_000, 50_000):
    print(f"n={n:>6}  pi≈{estimate(n):.6f}")
