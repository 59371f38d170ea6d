# family: secrets
# tries: to find what the service or the zygote left open
# invariant: 3
# layers: descriptors

import os

found = []
for fd in range(4, 256):
    try:
        os.fstat(fd)
        found.append(fd)
    except OSError:
        pass
if not found:
    raise OSError("nothing is open")
"escaped"
