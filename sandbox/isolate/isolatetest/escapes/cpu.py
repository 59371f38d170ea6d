# family: exhaustion
# tries: to use more than its share of a core
# invariant: 10
# layers: cgroups
# landlock: the service looks now and then, so a share as small as this is held roughly; TestLimitsHoldOnEveryLevel`, `TestCPUShareHolds measures it
# policy: cpu_percent=2

import time

began, spent = time.monotonic(), time.process_time()
while time.process_time() - spent < 0.2:
    if time.monotonic() - began > 4:
        raise TimeoutError("held back")
"escaped"
