# family: secrets
# tries: to read the code that another sandbox ran
# invariant: 8
# layers: separate_sandbox

marker = "source of a neighbour"

# --- another sandbox

import linecache

if not any("of a " + "neighbour" in "".join(entry[2]) for entry in linecache.cache.values() if len(entry) == 4):
    raise LookupError("nothing")
"escaped"
