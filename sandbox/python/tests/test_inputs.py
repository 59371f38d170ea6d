"""Runs whose clocks and randomness are repeated. Each guest is a process of its own, with the extension preloaded."""

import base64
import re
import time

import inputs
import pytest
from input_guests import OTHER_SEED, SEED, TIMEOUT, differences, readings, run_preloaded

# Expressions that have another value each time.
SOURCES = """
time.time()
time.time_ns()
time.monotonic()
time.perf_counter()
time.process_time()
time.thread_time()
time.clock_gettime_ns(time.CLOCK_BOOTTIME)
time.ctime()
time.sleep(0.01)
datetime.datetime.now()
datetime.datetime.now(datetime.UTC)
datetime.datetime.fromtimestamp(time.time())
datetime.date.today()
pd.Timestamp.now()
pd.Timestamp('now', tz='UTC')
pd.Timestamp.today()
np.datetime64('now')
np.datetime64('today')
random.random()
random.gauss(0, 1)
random.sample(range(1000), 5)
random.Random().random()
random.SystemRandom().random()
np.random.rand(3)
np.random.normal(size=3)
np.random.default_rng().random()
np.random.RandomState().rand()
np.random.SeedSequence().entropy
pd.Series(range(100)).sample(5).tolist()
uuid.uuid4()
secrets.token_hex()
secrets.choice(range(10**9))
tempfile.NamedTemporaryFile().name
tempfile.TemporaryDirectory().name
tempfile.mktemp()
os.urandom(200).hex()
os.getrandom(20).hex()
email.utils.formatdate(usegmt=True)
email.generator._make_boundary()
logging.makeLogRecord({}).created
concurrent.futures.ThreadPoolExecutor().submit(pow, 2, 3).result()
queue_timeout()
resource.getrusage(resource.RUSAGE_SELF)[:2]
sqlite3.connect(':memory:').execute("select julianday('now')").fetchone()
time.monotonic()
""".strip().splitlines()

ALL_SOURCES = f"""
import concurrent.futures, datetime, email.generator, email.utils, json, logging, os, queue, random, resource, secrets
import asyncio, sqlite3, tempfile, threading, time, uuid
import numpy as np, pandas as pd
found, order = {{}}, []
def queue_timeout():
    try: queue.Queue().get(timeout=0.01)
    except queue.Empty: return time.monotonic()
for text in {SOURCES!r}:
    found[text] = str(eval(text))
async def task(n):
    await asyncio.sleep(random.random() / 20)
    order.append((n, asyncio.get_running_loop().time()))
await asyncio.gather(*map(task, range(8)))
found["order"] = str(order)
class Shown:
    def __repr__(self): return f"{{time.time()}} {{random.random()}}"
found["shown"] = Shown()
found
"""


# -- replays


def test_a_run_is_repeated(new_guest):
    original = new_guest().run(ALL_SOURCES)
    replay = new_guest().run(ALL_SOURCES, clock=original["clock"])
    assert len(base64.b64decode(original["clock"])) > 100
    assert differences(original, replay) == set()
    assert "clock_missing" not in original and "clock_missing" not in replay
    assert replay["clock"] == ""


def test_each_source_differs_without_a_replay(new_guest):
    original, other = (new_guest().run(ALL_SOURCES, seed=seed) for seed in (SEED, OTHER_SEED))
    constant = {"time.sleep(0.01)", "concurrent.futures.ThreadPoolExecutor().submit(pow, 2, 3).result()"}
    slow = {source for source in SOURCES if re.search(r"today\(|'today'|'now'\)|ctime|formatdate|rusage", source)}
    assert differences(original, other) >= {*SOURCES, "order", "shown"} - constant - slow


def test_another_seed_changes_the_randomness_only(new_guest):
    code = """
import os, random, time, uuid
import numpy as np
{"clock": time.time(), "os": os.urandom(4).hex(), "random": random.random(), "numpy": np.random.rand(),
 "generator": np.random.default_rng().random(), "uuid": str(uuid.uuid4())}
"""
    original = new_guest().run(code)
    other = new_guest().run(code, seed=OTHER_SEED, clock=original["clock"])
    assert differences(original, other) == {"os", "random", "numpy", "generator", "uuid"}


def test_an_empty_seed_leaves_the_randomness_of_the_kernel(new_guest):
    code = "import os, random, time\n[time.time(), random.random(), os.urandom(16).hex()]"
    original = new_guest().run(code, seed="")
    replay = new_guest().run(code, seed="", clock=original["clock"])
    assert original["result"][0] == replay["result"][0]
    assert original["result"][1] != replay["result"][1] and original["result"][2] != replay["result"][2]


def test_a_session_is_repeated_run_by_run(new_guest):
    codes = ["import random, time\n[random.random(), time.time()]"] * 3
    original, guest, replayed = new_guest(), new_guest(), []
    done = [original.run(code, seed=seed) for code, seed in zip(codes, (SEED, OTHER_SEED, SEED))]
    for code, seed, each in zip(codes, (SEED, OTHER_SEED, SEED), done):
        replayed.append(guest.run(code, seed=seed, clock=each["clock"])["result"])
    assert [each["result"] for each in done] == replayed
    assert len({each["result"][0] for each in done}) == 3  # only the first run seeds the generators


def test_the_first_run_seeds_although_its_code_fails(new_guest):
    code = "import random\nx = random.random()\n1 / 0"
    guests = new_guest(), new_guest()
    for guest in guests:
        assert guest.run(code)["exception"]["type"] == "ZeroDivisionError"
    assert len({guest.run("x")["result"] for guest in guests}) == 1


# -- recorded replays


@pytest.mark.parametrize("has_fast_recorder", [True, False])
def test_a_recorded_replay_repeats_a_run_that_was_not_recorded(new_guest, has_fast_recorder):
    original = new_guest().run(ALL_SOURCES)
    replay = new_guest(has_fast_recorder=has_fast_recorder).run(ALL_SOURCES, clock=original["clock"], watch=True)
    assert differences(original, replay) == set()
    assert "clock_missing" not in replay


STOPPED = """
import os, random, time
class Own:
    def __repr__(self):
        return f"Own({time.time()}, {os.urandom(4).hex()})"
own, found = Own(), []
for i in range(5):
    found.append((time.time(), os.urandom(4).hex()))
[found, random.random(), time.time()]
"""


def test_a_debugger_takes_nothing_from_a_replay(new_guest):
    original = new_guest().run(STOPPED)
    inspecting = [
        {"do": "evaluate", "frame": 0, "expression": "time.time()", "hover": False},
        {"do": "evaluate", "frame": 0, "expression": "os.urandom(4).hex()", "hover": False},
        {"do": "texts", "frame": 0, "names": ["own"]},
        {"do": "resume", "mode": "continue"},
    ]
    lines = [
        {"id": 1, "line": 8, "condition": "time.time() and os.urandom(1)"},
        {"id": 2, "line": 9, "log": "{time.time()} {os.urandom(4)}"},
    ]
    guest = new_guest()
    replay = guest.run(STOPPED, clock=original["clock"], watch=True, stops={"lines": lines}, commands=inspecting * 5)
    assert replay["result"] == original["result"]
    assert "clock_missing" not in replay
    assert len(guest.answers) == 15 and not any("error" in answer for answer in guest.answers), guest.answers
    assert abs(float(guest.answers[0]["value"]) - time.time()) < TIMEOUT


# -- time


def test_sleeps_of_an_original_run_take_their_time(new_guest):
    began = time.monotonic()
    done = new_guest().run("import time\ntime.sleep(0.2)\ntime.sleep(0)")
    assert time.monotonic() - began >= 0.2 and done.get("exception") is None


def test_time_passes_after_the_end_of_a_log(new_guest):
    clock = new_guest().run("import time\n[time.time(), time.monotonic()]")["clock"]
    code = """
import asyncio, queue, select, threading, time
began, wall = time.monotonic(), time.time()
marks = []
def passed():
    marks.append(time.monotonic())
    return marks[-1] - began
time.sleep(3600)
assert 3600 <= passed() < 3601
select.select([], [], [], 0.05)
threading.Event().wait(0.05)
try: queue.Queue().get(timeout=0.05)
except queue.Empty: pass
assert 3600.15 <= passed() < 3602, passed()
end = time.monotonic() + 0.01
while time.monotonic() < end:
    pass
await asyncio.wait_for(asyncio.sleep(0.05), 5)
try: await asyncio.wait_for(asyncio.sleep(1000), 0.05)
except TimeoutError: pass
assert 3600.25 <= passed() < 3603
lock = threading.Lock()
lock.acquire()
assert not lock.acquire(timeout=0.05)
condition = threading.Condition()
with condition:
    assert not condition.wait_for(lambda: False, timeout=0.05)
assert marks == sorted(marks)
time.time() - wall >= 3600
"""
    done = new_guest().run(code, clock=clock)
    assert done["result"] is True, done
    assert done["clock_missing"] > 10


def test_readings_past_a_log_are_the_same_in_each_replay(new_guest):
    clock = new_guest().run("import time\ntime.monotonic()")["clock"]
    code = "import time\n[time.monotonic_ns() for _ in range(50)]"
    first, second = (new_guest().run(code, clock=clock) for _ in range(2))
    assert first["result"] == second["result"] == sorted(first["result"]) and first["clock_missing"] == 49
    assert len(set(first["result"])) == 50


def test_a_clock_without_readings_is_real(new_guest):
    clock = new_guest().run("import time\ntime.monotonic()")["clock"]
    done = new_guest().run("import time\ntime.time()", clock=clock)
    assert abs(done["result"] - time.time()) < TIMEOUT and done["clock_missing"] == 1


def test_a_full_log_ends_and_the_rest_is_counted(new_guest):
    code = "import time\nfound = [time.perf_counter_ns() for _ in range(70_000)]\n[found[:65_536:5_000], found]"
    guest = new_guest()
    original = guest.run(code.replace(", found]", ", len(found)]"))
    replay = new_guest().run(code + "[0], found == sorted(found), len(set(found))", clock=original["clock"])
    assert original["clock_missing"] == replay["clock_missing"] == 70_000 - 65_536
    assert len(base64.b64decode(original["clock"])) <= 256 << 10
    assert [len(each) for each in readings(original["clock"]).values()] == [65_536]
    assert replay["result"][0] == original["result"][0] and replay["result"][1:] == [True, 70_000]
    assert len(readings(guest.run("time.time()")["clock"])[0]) == 1  # the next run begins a log


def test_equal_readings_are_one_entry(extension):
    out = run_preloaded(
        extension,
        """
import ctypes
now = ctypes.PyDLL(None).time  # keeps the GIL
now.restype = ctypes.c_long
e.begin_inputs(b"", None)
found = [now(None) for _ in range(10_000)]
log, missing = e.end_inputs()
e.begin_inputs(b"", log)
print(found == [now(None) for _ in range(10_000)], len(log) < 100, e.end_inputs())
""",
    )
    assert out == "True True (b'', 0)"


# -- threads


def test_readings_do_not_depend_on_other_threads(new_guest):
    code = """
import threading, time
stop = []
def spin():
    while not stop: time.monotonic()
thread = threading.Thread(target=spin)
thread.start()
found = []
for _ in range(200):
    found.append(time.monotonic_ns())
    time.sleep(0)
    sum(range(20_000))
stop.append(1)
thread.join()
found
"""
    original = new_guest().run(code)
    replay = new_guest().run(code, clock=original["clock"])
    assert replay["result"] == original["result"]
    in_log = readings(original["clock"])[1]
    assert set(original["result"]) <= set(in_log) and len(in_log) <= 2 * 200 + 5  # sleep reads the clock, too


def test_a_reading_before_a_wait_for_a_thread_counts(new_guest):
    code = """
import threading, time
thread = threading.Thread(target=time.sleep, args=(0.05,))
thread.start()
before = time.monotonic()
thread.join()
[before, time.monotonic()]
"""
    original = new_guest().run(code)
    replay = new_guest().run(code, clock=original["clock"])
    assert replay["result"] == original["result"]


def test_other_threads_have_real_inputs(new_guest):
    code = """
import os, syscall_batch, threading, time
found = {}
def read():
    syscall_batch.resume_inputs(True)
    found.update(clock=time.time(), random=os.urandom(8).hex())
time.time()
thread = threading.Thread(target=read)
thread.start()
thread.join()
found["own"] = time.time(), os.urandom(8).hex()
found
"""
    original = new_guest().run(code)
    replay = new_guest().run(code, clock=original["clock"])
    assert differences(original, replay) == {"clock", "random"}
    assert len(readings(original["clock"])[0]) == 2


def test_a_replayed_sleep_waits_for_other_threads(new_guest):
    code = """
import threading, time
found = []
def work():
    time.sleep(0.1)
    found.append("worked")
threading.Thread(target=work).start()
time.sleep(0.3)
found
"""
    original = new_guest().run(code)
    replay = new_guest().run(code, clock=original["clock"])
    assert original["result"] == replay["result"] == ["worked"]


def test_threads_that_the_code_starts_are_counted(new_guest):
    started = """
import concurrent.futures, threading, time
def work():
    inner = threading.Thread(target=time.time)
    inner.start()
    inner.join()
for _ in range(3):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(abs, [1]))
"""
    guest = new_guest()
    assert guest.run(started)["threads"] == 7
    of_a_library = """
import ctypes
library, thread = ctypes.CDLL(None), ctypes.c_ulong()
assert library.pthread_create(ctypes.byref(thread), None, library.getpid, None) == 0
library.pthread_join(thread, None)
"""
    done = guest.run(of_a_library)
    assert done.get("exception") is None and "threads" not in done


def test_a_thread_of_the_debugger_is_not_counted(new_guest):
    code = "import threading, time\nx = 1\ny = 2"
    start = "(t := threading.Thread(target=time.time)).start() or t.join()"
    lines = [{"id": 1, "line": 2, "condition": start}]
    assert "threads" not in new_guest().run(code, watch=True, stops={"lines": lines})


# -- runs that end otherwise

ENDINGS = {
    "fails": "time.time()\n1 / 0",
    "exits": "time.time()\nraise SystemExit(3)",
    "is interrupted": "time.time()\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass",
    "is interrupted in its result": (
        "time.time()\nclass A:\n def __repr__(self):\n  os.kill(os.getpid(), signal.SIGINT)\n  while True: pass\nA()"
    ),
    "deletes modules": "time.time()\nfor name in list(sys.modules): del sys.modules[name]",
    "replaces functions": "time.time()\nimport binascii\nbinascii.b2a_base64 = os.urandom = time.time = None",
}


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize("code", ENDINGS.values(), ids=ENDINGS.keys())
def test_inputs_end_with_their_run(new_guest, code, watch):
    guest = new_guest()
    done = guest.run("import os, signal, sys, time\n" + code, watch=watch)
    assert len(readings(done["clock"])[0]) == 1
    assert done.get("interrupt", False) == ("SIGINT" in code)
    assert len(readings(guest.run("import time\ntime.time_ns()", watch=watch)["clock"])[0]) == 1


def test_code_that_cannot_be_compiled_reads_no_clock(new_guest):
    guest = new_guest()
    assert guest.run("1 +")["clock"] == ""
    assert guest.run("import time\ntime.time()")["clock"] != ""


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("watch", [False, True])
def test_code_that_reads_no_clock_has_an_empty_log(new_guest, watch, ordered):
    code = "import threading\nwith threading.Lock(): print(1 + 1)\ndisplay('x')\nsorted({3, 1})"
    done = new_guest().run(code, watch=watch, ordered=ordered)
    assert done["result"] == [1, 3] and done["clock"] == ""


def test_runs_without_inputs_are_not_logged(new_guest):
    guest = new_guest()
    done = guest.run("import time, random\n[time.time(), random.random()]", inputs=None)
    assert "clock" not in done and "clock_missing" not in done
    assert len(readings(guest.run("time.time()")["clock"])[0]) == 1


def test_without_a_preloaded_extension_a_run_has_no_log(new_guest):
    done = new_guest(preload=False).run("import time\ntime.time() > 0")
    assert done["result"] is True and "clock" not in done


def test_a_log_for_which_there_is_no_memory_is_left_out(monkeypatch):
    def fail():
        raise MemoryError

    monkeypatch.setattr(inputs, "is_available", True)
    monkeypatch.setattr(inputs, "_end", fail, raising=False)
    outcome: dict = {}
    inputs.Inputs().end(outcome)
    assert outcome == {}


def test_code_cannot_confuse_the_inputs(new_guest):
    code = """
import syscall_batch as e, threading, time
def meddle():
    assert e.end_inputs() == (b"", 0)
    e.resume_inputs(True)
    try: e.begin_inputs(b"", b"")
    except RuntimeError as error: return print(error)
    raise AssertionError
thread = threading.Thread(target=meddle)
thread.start(), thread.join()
time.time()
e.begin_inputs(b"", e.end_inputs()[0])
e.begin_inputs(b"x" * 32, None)
for wrong in ((b"1", None), (b"", 1)):
    try: e.begin_inputs(*wrong)
    except (TypeError, ValueError): pass
e.end_inputs()
e.end_inputs()
e.resume_inputs(e.pause_inputs())
e.resume_inputs(True)
time.time() > 0
"""
    guest = new_guest()
    done = guest.run(code)
    assert done["result"] is True and done["clock"] == "", done
    assert len(readings(guest.run("time.time()")["clock"])[0]) == 1


# -- the extension


def test_randomness_is_chacha8(extension):
    out = run_preloaded(
        extension,
        """
e.begin_inputs(bytes(32), None)
print(os.urandom(64).hex())
e.begin_inputs(bytes(32), None)
parts = b"".join(os.urandom(n) for n in (1, 3, 60, 64, 200, 5))
e.begin_inputs(bytes(32), None)
whole = os.getrandom(333)
print(parts == whole, len({whole[i:i + 64] for i in range(0, 320, 64)}))
e.end_inputs()
""",
    )
    # The first block of draft-strombergson-chacha-test-vectors, TC1 with 8 rounds and a key of 256 bits.
    block = (
        "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e"
        "984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe42"
    )
    assert out == f"{block}\nTrue 5"


def test_an_ordinary_run_maps_no_memory(extension):
    out = run_preloaded(
        extension,
        """
import resource
def used():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
def missing(count):
    e.begin_inputs(bytes(32), None)
    for _ in range(count): time.time()
    return e.end_inputs()[1]
missing(60_000)
before = used()
for _ in range(100): missing(30_000)
print(used() - before < 10 << 20)  # each of them has mapped 256 KiB, and given them back
resource.setrlimit(resource.RLIMIT_AS, (1 << 20, resource.RLIM_INFINITY))  # less than is used
few, many = missing(500), missing(60_000)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(few, many > 1000)
""",
    )
    assert out == "True\n0 True"


FORGED = """
import random, tempfile
new = tempfile.NamedTemporaryFile()
r = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
e.begin_inputs(b"", None)
for _ in range(20): time.time(), time.monotonic(), time.process_time(), time.clock_gettime(5), os.stat(new.name)
genuine, _ = e.end_inputs()
def forged(n):
    if n % 3 == 0:
        return r.randbytes(r.randrange(60))
    changed = bytearray(genuine[: r.randrange(len(genuine))])
    for _ in range(r.randrange(8) if changed else 0):
        changed[r.randrange(len(changed))] = r.choice((0, 1, 127, 128, 255, r.randrange(256)))
    return bytes(changed) + (b"\\xff" * r.randrange(12) if n % 3 == 1 else b"")
for n in range(100_000):
    e.begin_inputs(b"", forged(n))
    for id in (0, 1, 2, 5, 7):
        for _ in range(4):
            assert 0 <= time.clock_gettime_ns(id) <= 1 << 62
    time.time(), time.monotonic()
    time.sleep(r.choice((0, 1e-9, 1.5, 1e9)))
    os.stat(new.name), os.lstat(new.name)
    log, missing = e.end_inputs()
    assert log == b"" and missing >= 0
print("ended")
"""


def test_forged_logs_are_harmless(extension):
    assert run_preloaded(extension, FORGED) == "ended"


def test_a_long_forged_log_is_read_once(extension):
    out = run_preloaded(
        extension,
        """
log = b"\\x04\\x02" * 130_000 + b"\\x00\\x02"  # many readings of another clock
e.begin_inputs(b"", log)
first = time.time_ns()
for _ in range(100_000): time.time()
print(first, e.end_inputs()[1])
e.begin_inputs(b"", b"\\x03\\x02" + b"\\xff" * 9 + b"\\x01")  # more readings than any log has
e.begin_inputs(b"", b"\\x01\\x02\\xff\\xff\\x03")
print([time.time_ns() for _ in range(3)], e.end_inputs()[1])
e.begin_inputs(b"", b"\\x00\\x14\\x00\\x05")  # a clock that goes back, as one that is set
print([time.time_ns() for _ in range(2)], e.end_inputs()[1])
""",
    )
    assert out == "1 100000\n[1, 2, 3] 0\n[10, 7] 0"
