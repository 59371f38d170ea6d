from datetime import datetime
from pathlib import Path

stamp = datetime.now().strftime("%Y%m%d_%H%M%S_%f")
p = Path(f"report_{stamp}.txt")
p.write_text("run at " + datetime.now().isoformat() + "\n")
for f in sorted(Path(".").glob("report_*.txt")):
    st = f.stat()
    print(f.name, st.st_size, datetime.fromtimestamp(st.st_mtime).isoformat())
p.read_text()
