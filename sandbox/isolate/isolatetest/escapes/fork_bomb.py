# family: exhaustion
# tries: to fork thirty processes that stay
# invariant: 10
# layers: seccomp, cgroups

import os
import signal

held = []
try:
    for _ in range(30):
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        held.append(pid)
finally:
    for pid in held:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
"escaped"
