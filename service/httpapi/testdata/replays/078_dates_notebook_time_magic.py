%time total = sum(x * x for x in range(100_000))
%timeit -n 20 -r 3 sorted([5, 3, 1] * 50)
import time
t = time.perf_counter()
print(total, time.perf_counter() - t < 1)
