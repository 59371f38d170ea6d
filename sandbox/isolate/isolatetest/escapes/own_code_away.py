# family: files
# tries: to move the code that guards it away
# invariant: 6
# layers: readonly, landlock, uid

import os

os.rename("/glasshouse/values.py", "/glasshouse/away.py")
"escaped"
