# family: kernel
# tries: to become root by executing a setuid program
# invariant: 4
# layers: root, user, seccomp, landlock, no_new_privs
# proof: root

import os

os.set_inheritable(3, True)  # or the supervisor would see the socket close
os.execve(setuid_id, ["id", "-u"], {})
