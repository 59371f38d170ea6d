# family: stuck
# tries: to run past its time while it ignores interrupts
# invariant: 11
# layers: max_execution_time

import signal
import time

began = time.monotonic()
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while time.monotonic() - began < 6:
    time.sleep(0.01)
"escaped"
