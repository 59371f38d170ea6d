# family: protocol
# tries: to make the service hold a note of four megabytes
# invariant: 12
# layers: frames

import json
import os
import socket

body = json.dumps({"level": "INFO", "message": "x" * (4 << 20), "line": 1}).encode()
socket.socket(fileno=os.dup(3)).sendall(len(body).to_bytes(4, "big") + b"N" + body)
"escaped"
