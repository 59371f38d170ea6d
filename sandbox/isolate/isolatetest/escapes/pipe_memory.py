# family: exhaustion
# tries: to make the kernel hold a megabyte in a pipe
# invariant: 5
# layers: seccomp

import fcntl
import os

_, writing = os.pipe()
fcntl.fcntl(writing, 1031, 1 << 20)
"escaped"
