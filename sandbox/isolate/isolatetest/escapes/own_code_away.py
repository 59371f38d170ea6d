# family: files
# tries: to rename the guest's own code
# invariant: 6
# layers: readonly, landlock, uid, user

import os

os.rename("/glasshouse/values.py", "/glasshouse/away.py")
"escaped"
