# family: network
# tries: to send a datagram to the machine
# invariant: 7
# layers: seccomp, network
# proof: arrived

import socket

socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(nonce.encode(), ("127.0.0.1", udp_port))
"escaped"
