# family: python
# tries: to replace a function that another sandbox calls
# invariant: 8
# layers: separate_sandbox

import json

json.dumps = lambda *_, **__: "poisoned"

# --- another sandbox

import json

if json.dumps(1) != "poisoned":
    raise LookupError("as it was")
"escaped"
