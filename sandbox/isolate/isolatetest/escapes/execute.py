# family: kernel
# tries: to become another program
# invariant: 5
# layers: seccomp, landlock
# proof: printed

import os

os.set_inheritable(3, True)  # or the supervisor would see the socket close
os.execve(python, ["x", "-I", "-S", "-c", f"print({nonce!r}, flush=True)"], {})
