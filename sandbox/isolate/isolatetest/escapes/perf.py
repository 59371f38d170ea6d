# family: kernel
# tries: to observe the kernel through performance counters
# invariant: 5
# layers: seccomp

import struct

attributes = struct.pack("IIQQQQQ", 1, 64, 0, 0, 0, 0, 1 << 5 | 1 << 6).ljust(64, b"\0")
call(298, attributes, 0, -1, -1, 0)
"escaped"
