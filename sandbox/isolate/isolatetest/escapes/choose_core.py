# family: kernel
# tries: to bind itself to one core
# invariant: 5
# layers: seccomp

import os

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
"escaped"
