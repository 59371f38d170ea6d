# family: kernel
# tries: to enter the machine's network namespace
# invariant: 7
# layers: root, seccomp, landlock, capabilities, uid, user

import os

call(308, os.open(f"/proc/{victim}/ns/net", os.O_RDONLY), 0)
"escaped"
