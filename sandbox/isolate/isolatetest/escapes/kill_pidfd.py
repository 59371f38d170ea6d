# family: signals
# tries: to signal a process of the machine through a descriptor of it
# invariant: 4
# layers: seccomp, landlock, pid, uid, user
# proof: signalled

import os
import signal

signal.pidfd_send_signal(os.pidfd_open(victim), signal.SIGUSR1)
"escaped"
