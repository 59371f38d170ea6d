# family: memory of others
# tries: to copy an open file of a process of the machine
# invariant: 8
# layers: seccomp, pid, uid, user, landlock, capabilities
# proof: secret

import os

taken = call(438, os.pidfd_open(victim), descriptor, 0)
os.pread(taken, 64, 0).decode()
