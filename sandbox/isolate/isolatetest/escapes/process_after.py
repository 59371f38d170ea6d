# family: python
# tries: to leave a process that runs on after the answer
# invariant: 2
# layers: seccomp

import mmap
import os
import struct
import time

shared = mmap.mmap(-1, 4096)
ended = time.monotonic()
left = os.fork()
if left == 0:
    for _ in range(2000):
        shared[:8] = struct.pack("d", time.monotonic())
        time.sleep(0.002)
    os._exit(0)

# --- the next run

now = time.monotonic()
(last,) = struct.unpack("d", shared[:8])
os.kill(left, 9)
os.waitpid(left, 0)
if not last > ended + 0.1:
    raise TimeoutError("stopped between the runs")
"escaped"
