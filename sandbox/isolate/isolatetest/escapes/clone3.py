# family: kernel
# tries: to fork by clone3, whose flags a filter cannot read
# invariant: 5
# layers: seccomp

import os
import struct

if call(435, struct.pack("11Q", 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88) == 0:
    os._exit(0)
"escaped"
