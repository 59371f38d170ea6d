# family: stuck
# tries: to run past its time by catching the interrupt
# invariant: 11
# layers: max_execution_time

import time

began = time.monotonic()
while time.monotonic() - began < 6:
    try:
        time.sleep(0.01)
    except BaseException:
        pass
"escaped"
