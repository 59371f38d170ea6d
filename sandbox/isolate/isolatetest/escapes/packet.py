# family: network
# tries: to read packets from a network device
# invariant: 7
# layers: seccomp, capabilities, uid, user

import socket

socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
"escaped"
