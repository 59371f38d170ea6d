import time

start_wall = time.time()
start_mono = time.monotonic_ns()
start_cpu = time.process_time()
time.sleep(0.05)
total = sum(i ** 0.5 for i in range(20000))
wall = time.time() - start_wall
mono = (time.monotonic_ns() - start_mono) / 1e9
cpu = time.process_time() - start_cpu
print(f"wall={wall:.4f} mono={mono:.4f} cpu={cpu:.4f}")
print("slept at least 50 ms:", mono >= 0.05)
print("drift between clocks (us):", round((wall - mono) * 1e6, 1))
