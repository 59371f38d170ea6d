# family: python
# tries: to replace a builtin that another sandbox calls
# invariant: 8
# layers: separate_sandbox

import builtins

builtins.sorted = lambda *_, **__: "poisoned"

# --- another sandbox

if sorted([1]) != "poisoned":
    raise LookupError("as it was")
"escaped"
