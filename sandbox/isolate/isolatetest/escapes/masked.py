# family: stuck
# tries: to run past its time with every signal blocked
# invariant: 11
# layers: max_execution_time

import signal
import time

began = time.monotonic()
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while time.monotonic() - began < 6:
    time.sleep(0.01)
"escaped"
