# family: signals
# tries: to queue a signal with a value to a process of the machine
# invariant: 4
# layers: seccomp, landlock, pid, uid, user
# proof: signalled

import struct

call(129, victim, 10, struct.pack("iii", 10, 0, -1).ljust(128, b"\0"))
"escaped"
