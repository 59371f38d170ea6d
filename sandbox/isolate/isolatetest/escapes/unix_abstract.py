# family: network
# tries: to reach a socket of the machine that has no path
# invariant: 7
# layers: seccomp, network, landlock
# proof: arrived

import socket

with socket.socket(socket.AF_UNIX) as s:
    s.connect("\0" + abstract)
    s.sendall(nonce.encode())
"escaped"
