# family: kernel
# tries: to become root by a program that makes root of who runs it
# invariant: 4
# layers: root, seccomp, landlock, no_new_privs
# proof: root

import os

os.set_inheritable(3, True)  # or the host would see the hatch close
os.execve(setuid_id, ["id", "-u"], {})
