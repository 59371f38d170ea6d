# family: kernel
# tries: to fork into a new user namespace
# invariant: 5
# layers: seccomp

import os

if call(56, 0x10000000 | 17, 0, 0, 0, 0) == 0:
    os._exit(0)
"escaped"
