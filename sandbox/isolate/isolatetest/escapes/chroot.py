# family: kernel
# tries: to make another folder its root directory
# invariant: 5
# layers: seccomp, capabilities, uid

import os

os.chroot("/session")
"escaped"
