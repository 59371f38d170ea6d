# family: stuck
# tries: to run past its time while the service reads half a frame
# invariant: 11
# layers: max_execution_time

import os
import time

body = b'{"level": "INFO", "message": "slow"}'
os.write(3, len(body).to_bytes(4, "big") + b"N" + body[:10])
began = time.monotonic()
while time.monotonic() - began < 6:
    try:
        time.sleep(0.01)
    except BaseException:
        pass
os.write(3, body[10:])
"escaped"
