# family: exhaustion
# tries: to use more than its share of a core
# invariant: 10
# layers: cgroups
# landlock: the service measures the CPU time every 50 ms, so it enforces a share this small only roughly; TestCPUShareHolds measures it
# policy: cpu_percent=2

import time

began, spent = time.monotonic(), time.process_time()
while time.process_time() - spent < 0.2:
    if time.monotonic() - began > 4:
        raise TimeoutError("the CPU share is enforced")
"escaped"
