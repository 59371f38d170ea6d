# family: python
# tries: to leave a process that outlives the sandbox
# invariant: 1
# layers: seccomp, pid
# proof: left

import os
import time

named, naming = os.pipe()
if os.fork() == 0:
    call(157, 15, nonce[:15].encode(), 0, 0, 0)  # PR_SET_NAME
    os.write(naming, b"x")
    os.close(3)
    time.sleep(3)
    os._exit(0)
os.read(named, 1)
"escaped"
