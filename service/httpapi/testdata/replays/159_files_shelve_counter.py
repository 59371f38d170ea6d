import shelve
with shelve.open("counts") as db:
    for w in "to be or not to be that is the question to be".split():
        db[w] = db.get(w, 0) + 1
    print(sorted(db.items(), key=lambda kv: (-kv[1], kv[0]))[:4])
with shelve.open("counts") as db:
    print(list(db.keys()))
from pathlib import Path
sorted(p.name for p in Path(".").glob("counts*"))
