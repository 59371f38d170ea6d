# family: exhaustion
# tries: to reserve more of /session than it may have, without writing
# invariant: 6
# layers: quota

import os

for n in range(3):
    fd = os.open(f"/session/{n}", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(fd, 0, 40 << 20)
"escaped"
