# family: files
# tries: to leave a module where other sandboxes import from
# invariant: 8
# layers: readonly, landlock, uid, user

open("/glasshouse/poison.py", "w").write("value = 1")

# --- another sandbox

import sys

sys.path.insert(0, "/glasshouse")
import poison  # noqa: F401

"escaped"
