# family: secrets
# tries: to find what the service or the zygote left open
# invariant: 3
# import: the zygote has its control socket, over which it reports the children that the service asked for
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
