# family: exhaustion
# tries: to start forty threads with small stacks
# invariant: 10
# layers: cgroups

import threading

threading.stack_size(65536)
over = threading.Event()
try:
    for _ in range(40):
        threading.Thread(target=over.wait, daemon=True).start()
finally:
    over.set()
"escaped"
