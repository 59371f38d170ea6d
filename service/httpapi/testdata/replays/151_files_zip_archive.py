import zipfile, hashlib
from pathlib import Path

for n in range(3):
    Path(f"part{n}.txt").write_text(f"part {n}\n" * 50)
with zipfile.ZipFile("bundle.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for n in range(3):
        z.write(f"part{n}.txt")
    z.writestr("README", "made by a script")
with zipfile.ZipFile("bundle.zip") as z:
    for i in z.infolist():
        print(i.filename, i.file_size, i.compress_size, i.date_time)
print(hashlib.md5(Path("bundle.zip").read_bytes()).hexdigest())
