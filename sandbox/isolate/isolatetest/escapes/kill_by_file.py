# family: signals
# tries: to make the kernel signal a process of the machine when a socket is readable
# invariant: 4
# layers: seccomp, landlock, pid, uid, user
# proof: signalled

import fcntl
import os
import socket

a, b = socket.socketpair()
fcntl.fcntl(a, fcntl.F_SETOWN, victim)
fcntl.fcntl(a, 10, 10)  # F_SETSIG, SIGUSR1
fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
b.send(b"x")
"escaped"
