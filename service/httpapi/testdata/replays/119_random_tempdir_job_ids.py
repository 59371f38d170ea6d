import tempfile, uuid, random, string
from pathlib import Path
root = Path(tempfile.mkdtemp())
jobs = {}
for _ in range(4):
    jid = uuid.uuid4().hex[:8] + "-" + "".join(random.choices(string.ascii_lowercase, k=4))
    fd, path = tempfile.mkstemp(dir=root, suffix=".job")
    Path(path).write_text(jid)
    jobs[jid] = Path(path).name
for p in root.glob("*.job"):
    print(p.name, p.read_text(), jobs[p.read_text()] == p.name)
sorted(jobs.values())[0]
