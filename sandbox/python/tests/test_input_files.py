"""Times of files and devices of random bytes in runs that are repeated."""


import pytest
from input_guests import GUEST, OTHER_SEED, SEED, differences

FILES = """
import os, pathlib, tarfile, tempfile, time, zipfile
os.chdir(tempfile.mkdtemp())
found = {}
def seen(name, s):
    found[name] = [s.st_mtime_ns, s.st_ctime_ns, s.st_atime_ns]
path = pathlib.Path("a.txt")
path.write_text("one")
seen("stat", os.stat("a.txt"))
time.sleep(0.01)
path.write_text("two")
seen("again", path.stat())
found["later"] = path.stat().st_mtime_ns > found["stat"][0]
path.read_text()
os.symlink("a.txt", "link")
seen("lstat", os.lstat("link"))
folder = os.open(".", os.O_RDONLY)
seen("folder", os.fstat(folder))
seen("fstatat", os.stat("a.txt", dir_fd=folder))
os.close(folder)
for entry in os.scandir():
    seen("entry " + entry.name, entry.stat())
os.mkdir("src")
path.rename("src/a.txt")
for n, times in enumerate([(5, 10**9 + 7), (-1, -10**9 - 1), (2**31 * 10**9, 2**33 * 10**9)]):
    os.utime("src/a.txt", ns=times)
    seen(f"set {n}", os.stat("src/a.txt"))
    assert found[f"set {n}"][0] == times[1] and found[f"set {n}"][2] == times[0]
with tarfile.open("src.tar", "w") as tar:
    tar.add("src")
    found["tar"] = [member.mtime for member in tar]
os.utime("src/a.txt")
with zipfile.ZipFile("src.zip", "w") as archive:
    archive.write("src/a.txt")
    found["zip"] = archive.infolist()[0].date_time
found["age"] = time.time() - os.path.getmtime("src.tar")
found
"""


@pytest.mark.parametrize("watch", [False, True])
def test_times_of_files_are_repeated(new_guest, watch):
    original = new_guest().run(FILES)
    replay = new_guest().run(FILES, clock=original["clock"], watch=watch)
    assert differences(original, replay) == set()
    assert "clock_missing" not in original and "clock_missing" not in replay
    assert original["result"]["later"] is True
    other = new_guest().run(FILES)
    assert differences(original, other) >= {"stat", "again", "lstat", "folder", "fstatat", "entry link", "age"}


def test_times_of_files_of_an_earlier_run_are_repeated(new_guest):
    codes = [
        "import os, tempfile\npath = tempfile.mkstemp()[1]\nopen(path, 'w').write('x')",
        "s = os.stat(path)\n[s.st_mtime, s.st_ctime]",
    ]
    original, replay = new_guest(), new_guest()
    done = [original.run(code) for code in codes]
    again = [replay.run(code, clock=each["clock"]) for code, each in zip(codes, done)]
    assert again[1]["result"] == done[1]["result"] and "clock_missing" not in again[1]


def test_times_of_old_files_are_real_and_not_logged(new_guest):
    code = f"import os, json\nos.stat({GUEST.parent.as_posix()!r}).st_mtime_ns"
    done = new_guest().run(code)
    assert done["clock"] == "" and done["result"] == GUEST.parent.stat().st_mtime_ns


@pytest.mark.parametrize("reading", ["", "time.time()"])
def test_a_replay_without_times_of_files_reads_them_by_its_clock(new_guest, reading):
    clock = new_guest().run("import time\ntime.sleep(0.05)\n" + reading)["clock"]
    code = """
import os, tempfile, time
now, path = time.time(), tempfile.mkstemp()[1]
open(path, "w").write("x")
[os.stat(path).st_mtime - now, os.stat(path).st_ctime == os.stat(path).st_mtime]
"""
    done = new_guest().run(code, clock=clock)
    assert abs(done["result"][0]) < 0.5 and done["result"][1] is True
    assert done["clock_missing"] >= 3


def test_imports_read_the_real_times_of_files(new_guest):
    code = """
import os, sys, tempfile
sys.path.insert(0, tempfile.mkdtemp())
open(sys.path[0] + "/own.py", "w").write("X = 1")
"""
    original = new_guest().run(code)
    imports = "import own, colorsys\nsys.modules.pop('colorsys')\nimport colorsys\nfor n in range(9):\n"
    imports += "  try: __import__(f'missing{n}')\n  except ImportError: pass\n"
    replay = new_guest().run(code + imports, clock=original["clock"])
    assert replay.get("exception") is None
    assert replay.get("clock_missing", 0) < 9  # it opens the source of own.py, and the file of its compiled code


def test_a_full_log_keeps_room_for_clocks(new_guest):
    code = """
import os, tempfile, time
path = tempfile.mkstemp()[1]
for n in range(40_000):
    os.path.exists(path)
[time.time(), time.monotonic()]
"""
    original = new_guest().run(code)
    replay = new_guest().run(code, clock=original["clock"])
    assert original["clock_missing"] > 0 and replay["result"] == original["result"]


# -- random devices


DEVICES = """
import os, sqlite3, tempfile
found = {}
for name in "/dev/urandom", "/dev/random":
    with open(name, "rb") as file:
        found[name] = file.read(20).hex()
        found[name + " dup"] = os.read(os.dup(file.fileno()), 8).hex()
with tempfile.NamedTemporaryFile("w+") as file:
    print("text", file=file, flush=True)
    fd = os.open("/dev/urandom", os.O_RDONLY)
    found["os"] = os.read(fd, 5000).hex()
    os.close(fd)
    assert os.open(file.name, os.O_RDONLY) == fd
    found["file"] = os.read(fd, 5).decode()
base = sqlite3.connect(":memory:")
found["sqlite"] = base.execute("SELECT random(), hex(randomblob(8))").fetchall()
base.execute("CREATE TABLE t AS WITH RECURSIVE c(n) AS (SELECT 1 UNION SELECT n + 1 FROM c LIMIT 50) SELECT n FROM c")
found["order"] = base.execute("SELECT n FROM t ORDER BY random()").fetchall()
found
"""


def test_devices_of_random_bytes_are_repeated(new_guest):
    original, other = (new_guest().run(DEVICES, seed=seed) for seed in (SEED, OTHER_SEED))
    replay = new_guest().run(DEVICES, clock=original["clock"])
    assert differences(original, replay) == set()
    assert differences(original, other) == {*original["result"]} - {"file"}
    assert original["result"]["file"] == "text\n"


def test_devices_have_the_randomness_of_the_kernel_without_a_seed(new_guest):
    code = "open('/dev/urandom', 'rb').read(16).hex()"
    guest = new_guest()
    assert len({guest.run(code, seed="")["result"] for _ in range(2)}) == 2
