# family: network
# tries: to reach the kernel's ciphers
# invariant: 7
# layers: seccomp
# needs: AF_ALG

import socket

socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
"escaped"
