# family: python
# tries: to escape an interrupt inside a finalizer
# invariant: 11
# import: it concerns the time limit of a run
# layers: max_execution_time

import time


class Stubborn:
    def __del__(self):
        began = time.monotonic()
        while time.monotonic() - began < 6:
            try:
                time.sleep(0.01)
            except BaseException:
                pass


Stubborn()
"escaped"
