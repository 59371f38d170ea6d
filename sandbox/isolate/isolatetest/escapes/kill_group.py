# family: signals
# tries: to signal a process group of the machine
# invariant: 4
# layers: seccomp, landlock, pid, uid, user
# proof: signalled

import os
import signal

os.killpg(victim, signal.SIGUSR1)
"escaped"
