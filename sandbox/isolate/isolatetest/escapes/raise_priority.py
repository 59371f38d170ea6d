# family: kernel
# tries: to go before the service
# invariant: 5
# layers: seccomp, user, capabilities, uid

import os

os.setpriority(os.PRIO_PROCESS, 0, -5)
"escaped"
