import time, tracemalloc
tracemalloc.start()
c0 = time.process_time_ns()
x = sorted((i * 7919) % 10007 for i in range(60000))
print("cpu time +%.4f s" % ((time.process_time_ns() - c0) / 1e9), "traced", tracemalloc.get_traced_memory())
tracemalloc.stop()
print("thread_time", time.thread_time() > 0, "boot", time.clock_gettime(time.CLOCK_MONOTONIC))
print(time.get_clock_info("perf_counter"))
x[:3]
