# family: python
# tries: to go on counting in a thread after the answer
# invariant: 2
# layers: freeze

import threading
import time

ticks = []


def tick():
    while len(ticks) < 10_000:
        ticks.append(time.monotonic())
        time.sleep(0.002)


threading.Thread(target=tick, daemon=True).start()
ended = time.monotonic()

# --- the next run

now = time.monotonic()
# A busy machine may stop the process late and take long to run the next line.
third = (now - ended) / 3
if not any(ended + third < at < now - third for at in ticks):
    raise TimeoutError("stopped between the runs")
"escaped"
