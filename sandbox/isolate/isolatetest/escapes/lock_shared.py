# family: files
# tries: to lock a file that other sandboxes and the machine use
# invariant: 8
# layers: seccomp

import fcntl
import os

first, second = (os.open(os.__file__, os.O_RDONLY) for _ in range(2))
fcntl.flock(first, fcntl.LOCK_EX)
try:
    fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    told = "nothing is locked"
except BlockingIOError:
    told = "escaped"
told
