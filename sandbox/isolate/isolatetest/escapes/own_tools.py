# family: python
# tries: to mount by the tools that locked it down
# invariant: 6
# walls: seccomp, landlock, capabilities, uid

import sys

sys.path.append("/glasshouse")
import lockdown

lockdown.mount_tmpfs("/tmp", size=1 << 30)
"escaped"
