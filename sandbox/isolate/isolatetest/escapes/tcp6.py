# family: network
# tries: to reach a port of the machine by IPv6
# invariant: 7
# layers: seccomp, network, landlock
# proof: arrived
# needs: ipv6

import socket

with socket.socket(socket.AF_INET6) as s:
    s.connect(("::1", port6))
    s.sendall(nonce.encode())
"escaped"
