# family: signals
# tries: to signal a process of the machine
# invariant: 4
# layers: seccomp, landlock, pid, uid, user
# proof: signalled

import os
import signal

os.kill(victim, signal.SIGUSR1)
"escaped"
