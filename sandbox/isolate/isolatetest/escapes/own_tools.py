# family: python
# tries: to mount with the functions that locked it down
# invariant: 6
# layers: seccomp, landlock, capabilities, uid

import sys

sys.path.append("/glasshouse")
import lockdown
import syscalls

calls = syscalls.Batch()
lockdown.mount_tmpfs(calls, "/tmp", size=1 << 30)
calls.run()
"escaped"
