import tarfile, io, hashlib, time
from pathlib import Path
Path("src").mkdir(exist_ok=True)
for n in ("b", "a", "c"):
    Path("src", f"{n}.py").write_text(f"print({n!r})\n")
with tarfile.open("src.tar", "w") as t:
    t.add("src")
with tarfile.open("src.tar") as t:
    for m in t.getmembers():
        print(m.name, m.size, m.mode, m.uid, time.strftime("%H:%M", time.localtime(m.mtime)))
hashlib.sha256(Path("src.tar").read_bytes()).hexdigest()
