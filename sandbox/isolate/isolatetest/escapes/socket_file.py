# family: files
# tries: to leave a socket in a folder
# invariant: 15
# layers: seccomp, landlock

import socket

socket.socket(socket.AF_UNIX).bind("/session/socket")
"escaped"
