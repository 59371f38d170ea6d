# family: kernel
# tries: to start a program
# invariant: 5
# layers: seccomp, landlock

import os

pid = os.posix_spawn(python, ["x", "-I", "-S", "-c", "0"], {})
if os.waitpid(pid, 0)[1] != 0:
    raise OSError("it did not run")
"escaped"
