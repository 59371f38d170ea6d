# family: exhaustion
# tries: to hold twice the memory that it may have
# invariant: 10
# layers: cgroups, rlimits
# policy: max_memory_mb=64, max_threads=1

held = [b"x" * (10 << 20) for _ in range(14)]
"escaped"
