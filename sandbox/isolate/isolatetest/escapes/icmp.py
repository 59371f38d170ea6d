# family: network
# tries: to write packets of its own
# invariant: 7
# layers: seccomp, capabilities, uid, user

import socket

socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
"escaped"
