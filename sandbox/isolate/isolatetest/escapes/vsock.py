# family: network
# tries: to speak to the machine's own host
# invariant: 7
# layers: seccomp
# needs: AF_VSOCK

import socket

socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
"escaped"
