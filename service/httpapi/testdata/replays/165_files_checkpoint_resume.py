import json
from pathlib import Path
import random

ck = Path("checkpoint.json")
state = json.loads(ck.read_text()) if ck.exists() else {"i": 0, "acc": 0.0, "rng": None}
r = random.Random()
if state["rng"]:
    v, internal, g = state["rng"]
    r.setstate((v, tuple(internal), g))
for i in range(state["i"], state["i"] + 5):
    state["acc"] += r.random()
    state["i"] = i + 1
    state["rng"] = r.getstate()
    ck.write_text(json.dumps(state))
print("after", state["i"], "steps:", state["acc"])
print("checkpoint bytes:", ck.stat().st_size)
ck.rename("checkpoint.done.json")
