# family: exhaustion
# tries: to make more folders than /session may have
# invariant: 6
# layers: quota

import os

for n in range(17000):
    os.mkdir(f"/session/{n}")
"escaped"
