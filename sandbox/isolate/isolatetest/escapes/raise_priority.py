# family: kernel
# tries: to get a higher priority than the service
# invariant: 5
# layers: seccomp, user, capabilities, uid

import os

os.setpriority(os.PRIO_PROCESS, 0, -5)
"escaped"
