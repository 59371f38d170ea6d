# family: kernel
# tries: to rename the machine that it sees
# invariant: 5
# layers: seccomp, capabilities, uid

import socket

socket.sethostname("escaped")
"escaped"
