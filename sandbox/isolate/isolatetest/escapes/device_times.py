# family: files
# tries: to set the times of the host's /dev/null
# invariant: 6
# layers: readonly
# landlock: whoever may write to it may set its times to now

import os

os.utime("/dev/null")
"escaped"
