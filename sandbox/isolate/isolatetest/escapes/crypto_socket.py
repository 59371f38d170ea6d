# family: network
# tries: to use the kernel's ciphers through an AF_ALG socket
# invariant: 7
# layers: seccomp
# needs: AF_ALG

import socket

socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)
"escaped"
