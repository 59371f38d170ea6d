# family: files
# tries: to set the mode of the machine's /dev/null
# invariant: 6
# layers: readonly, uid, user

import os

os.chmod("/dev/null", 0o666)  # what it is
"escaped"
