# family: kernel
# tries: to become the user of another sandbox
# invariant: 4
# layers: seccomp, capabilities, uid, user

import os

os.setresuid(1234, 1234, 1234)
"escaped"
