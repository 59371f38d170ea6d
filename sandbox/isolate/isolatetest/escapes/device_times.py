# family: files
# tries: to set the times of the host's /dev/null
# invariant: 6
# walls: readonly

import os

os.utime("/dev/null")
"escaped"
