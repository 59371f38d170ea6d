# family: network
# tries: to get a socket by socketpair
# invariant: 7
# layers: seccomp

import socket

fds = (ctypes.c_int * 2)()
try:
    call(53, socket.AF_INET, socket.SOCK_STREAM, 0, fds)
except OSError as error:
    if error.errno != 95:  # the kernel's own answer: the filter let it pass
        raise
"escaped"
