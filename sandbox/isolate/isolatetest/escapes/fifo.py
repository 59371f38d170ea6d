# family: files
# tries: to leave a FIFO, on which a reader would hang
# invariant: 15
# layers: seccomp, landlock

import os

os.mkfifo("/session/fifo")
"escaped"
