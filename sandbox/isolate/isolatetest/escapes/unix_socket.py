# family: network
# tries: to reach a socket of the machine by its path
# invariant: 7
# layers: seccomp, root
# proof: arrived

import socket

with socket.socket(socket.AF_UNIX) as s:
    s.connect(unix_path)
    s.sendall(nonce.encode())
"escaped"
