# family: kernel
# tries: to fork by the newest call
# invariant: 5
# layers: seccomp

import os
import struct

if call(435, struct.pack("11Q", 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88) == 0:
    os._exit(0)
"escaped"
