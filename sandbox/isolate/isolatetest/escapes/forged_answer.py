# family: protocol
# tries: to go on running after an answer that it forged
# invariant: 2
# layers: freeze

import json
import os
import time

body = json.dumps({"result": None, "exception": None, "outputs": [], "truncated": {}, "exit": None, "interrupt": False}).encode()
before, gap = time.monotonic(), 0
os.write(3, len(body).to_bytes(4, "big") + b"D" + body)
for _ in range(200):
    time.sleep(0.005)
    now = time.monotonic()
    before, gap = now, max(gap, now - before)
if gap > 0.3:
    raise TimeoutError("stopped between the runs")
"escaped"

# --- the next run

0
