# family: network
# tries: to reach a port of the machine
# invariant: 7
# layers: seccomp, network, landlock
# proof: arrived

import socket

with socket.create_connection(("127.0.0.1", port), 2) as s:
    s.sendall(nonce.encode())
"escaped"
