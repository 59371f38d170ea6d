# family: files
# tries: to fill the machine's shared memory
# invariant: 6
# layers: root, landlock

import os

with open(f"/dev/shm/{nonce}", "w") as file:
    file.write(nonce)
os.unlink(f"/dev/shm/{nonce}")
"escaped"
