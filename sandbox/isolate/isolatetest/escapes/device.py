# family: files
# tries: to make a device of the machine's memory
# invariant: 5
# layers: seccomp, landlock, capabilities, uid, user

import os

os.mknod("/tmp/memory", 0o020666, os.makedev(1, 1))
"escaped"
