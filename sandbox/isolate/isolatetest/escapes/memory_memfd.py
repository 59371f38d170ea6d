# family: exhaustion
# tries: to hold twice the memory that it may have, in files that have no name
# invariant: 10
# layers: seccomp, cgroups
# policy: max_memory_mb=64

import os

held = []
for _ in range(4):
    fd = os.memfd_create("x")
    os.write(fd, b"x" * (40 << 20))
    held.append(fd)
"escaped"
