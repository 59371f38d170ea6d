# family: secrets
# tries: to list a folder of the machine
# invariant: 8
# layers: root

import os

if not os.listdir(folder):
    raise OSError("empty")
"escaped"
