# family: protocol
# tries: to make the service hold an answer of forty megabytes
# invariant: 12
# layers: frames
# proof: large

import json
import os
import socket

body = json.dumps({"result": "escaped" + " " * (40 << 20), "exception": None, "outputs": [], "truncated": {}, "exit": None, "interrupt": False}).encode()
socket.socket(fileno=os.dup(3)).sendall(len(body).to_bytes(4, "big") + b"D" + body)
