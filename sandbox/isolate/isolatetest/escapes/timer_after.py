# family: python
# tries: to get a timer signal after the answer
# invariant: 2
# layers: freeze

import signal
import time

ticks = []
signal.signal(signal.SIGALRM, lambda *_: ticks.append(time.monotonic()))
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
ended = time.monotonic()

# --- the next run

signal.setitimer(signal.ITIMER_REAL, 0)
now = time.monotonic()
if not any(ended + 0.1 < at < now - 0.1 for at in ticks):
    raise TimeoutError("stopped between the runs")
"escaped"
