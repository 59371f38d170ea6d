# family: secrets
# tries: to find a module that another sandbox made
# invariant: 8
# layers: separate_sandbox

import sys
import types

sys.modules["left"] = types.ModuleType("left")

# --- another sandbox

import left  # noqa: F401

"escaped"
