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
# A busy machine may stop the process late and take long to run the next line.
third = (now - ended) / 3
if not any(ended + third < at < now - third for at in ticks):
    raise TimeoutError("stopped between the runs")
"escaped"
