import tempfile
from pathlib import Path

with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
    f.write("a,b\n1,2\n")
    f.flush()
    print("temp file:", Path(f.name).name, Path(f.name).stat().st_size)
    print("in folder:", Path(f.name).parent)
d = tempfile.mkdtemp(prefix="job-")
Path(d, "x.txt").write_text("hi")
print([str(p) for p in Path(d).iterdir()])
with tempfile.TemporaryDirectory() as td:
    print(td)
