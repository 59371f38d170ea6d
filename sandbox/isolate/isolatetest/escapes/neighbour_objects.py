# family: secrets
# tries: to find objects of another sandbox in Python's heap
# invariant: 8
# layers: separate_sandbox

held = {"secret": "gh-" + "left-in-the-heap", "list": []}

# --- another sandbox

import gc

for thing in gc.get_objects():
    if type(thing) is dict and str(thing.get("secret")).startswith("gh-left"):
        break
else:
    raise LookupError("nothing")
"escaped"
