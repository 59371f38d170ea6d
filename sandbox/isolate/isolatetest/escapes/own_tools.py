# family: python
# tries: to change its groups with the functions that locked it down
# invariant: 4
# layers: seccomp, capabilities, uid

import sys

sys.path.append("/glasshouse")
import syscalls

calls = syscalls.Batch()
calls.call("setgroups", "setgroups", 0, None)
calls.run()
"escaped"
