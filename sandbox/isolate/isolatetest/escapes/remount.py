# family: kernel
# tries: to remount the root writable
# invariant: 6
# layers: seccomp, landlock, capabilities, uid, user

import struct

call(442, -100, b"/", 0, struct.pack("4Q", 0, 1, 0, 0), 32)
open("/poison", "w").close()
"escaped"
