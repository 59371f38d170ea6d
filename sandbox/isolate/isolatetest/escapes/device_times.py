# family: files
# tries: to set the times of the machine's /dev/null
# invariant: 6
# layers: readonly
# landlock: a process that may write to the device may set its times to now

import os

os.utime("/dev/null")
"escaped"
