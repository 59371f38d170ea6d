# family: kernel
# tries: to start a program that it has written
# invariant: 6
# layers: seccomp, landlock

import os
import shutil

shutil.copyfile(python, "/session/program")
os.chmod("/session/program", 0o755)
pid = os.posix_spawn("/session/program", ["x", "-I", "-S", "-c", "0"], {})
os.waitpid(pid, 0)
"escaped"
