from pathlib import Path
import time

p = Path("touch.txt")
p.write_text("one")
m1 = p.stat().st_mtime_ns
time.sleep(0.02)
p.write_text("two")
m2 = p.stat().st_mtime_ns
print("modified:", time.strftime("%H:%M:%S", time.localtime(m2 / 1e9)), "later by ms:", (m2 - m1) / 1e6)
st = p.stat()
print("inode", st.st_ino, "mode", oct(st.st_mode), "links", st.st_nlink)
p.resolve()
