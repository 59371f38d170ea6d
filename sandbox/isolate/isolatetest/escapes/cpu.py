# family: exhaustion
# tries: to use more than its share of a core
# invariant: 10
# walls: cgroups
# policy: cpu_percent=10

import time

began, spent = time.monotonic(), time.process_time()
while time.process_time() - spent < 0.35:
    pass
if time.monotonic() - began > 2.5:
    raise TimeoutError("held back")
"escaped"
