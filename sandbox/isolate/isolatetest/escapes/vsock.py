# family: network
# tries: to connect to the hypervisor of the machine
# invariant: 7
# layers: seccomp
# needs: AF_VSOCK

import socket

socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
"escaped"
