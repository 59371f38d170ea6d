# family: network
# tries: to ask for the machine's network devices
# invariant: 7
# layers: seccomp, network
# needs: an interface

import socket

if not {name for _, name in socket.if_nameindex()} & set(interfaces):
    raise OSError("no device of the machine")
"escaped"
