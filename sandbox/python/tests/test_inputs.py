"""Runs whose clocks and randomness are repeated. Each guest is a process of its own, with the extension preloaded."""

import base64
import contextlib
import json
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import sys

import protocol
import pytest
import recorder_ring

GUEST = pathlib.Path(__file__).parents[1] / "guest"
SEED, OTHER_SEED = "5e" * 32, "0123456789abcdef" * 4
TIMEOUT = 60  # seconds for a frame; it only ends a guest that hangs

SERVE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
sys.path[:0] = sys.argv[2:]
import numpy, pandas, numpy.random
import guest
one = guest.Guest({}, [], {}, {"enabled": False}, False)
one._channel.send(guest.protocol.READY, {})
while one._serve(one._channel):
    pass
"""


class Guest:
    """A guest without a zygote, which does not lock itself down."""

    def __init__(self, extension: str):
        ours, theirs = socket.socketpair()
        ours.settimeout(TIMEOUT)
        recorder = [path for path in sys.path if pathlib.Path(path).name.startswith("recorder_fast")]
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(theirs.fileno()), str(GUEST), os.path.dirname(extension), *recorder],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.DEVNULL,
            env={"LD_PRELOAD": extension, "MPLBACKEND": "agg"},
        )
        theirs.close()
        self._socket, self._file = ours, ours.makefile("rb")
        self.pid = self._process.pid
        self.outputs: list = []
        self.stops: list = []  # texts of the answers to commands
        assert self._receive()[0] == protocol.READY

    def close(self) -> None:
        self._file.close()
        self._socket.close()
        self._process.wait(TIMEOUT)

    def start(self, code: str, seed: str = SEED, clock: "str | None" = None, commands=(), **job) -> None:
        """Starts a run. It is a replay if clock is a log, and recorded if job has watch."""
        inputs = {"seed": seed} if clock is None else {"seed": seed, "clock": clock}
        frame = {"code": code, "context": {}, "inputs": inputs, **job}
        body = protocol.encode_frame(protocol.RUN, protocol.encode(frame))
        self._commands, self._ring = list(commands), None
        if not frame.get("watch"):
            self._socket.sendall(body)
            return
        fd = os.memfd_create("ring")
        os.ftruncate(fd, recorder_ring.END)
        self._ring = mmap.mmap(fd, recorder_ring.END)
        socket.send_fds(self._socket, [body], [fd])
        os.close(fd)

    def wait(self) -> dict:
        """Returns the Done of the run."""
        self.outputs, self.stops = [], []
        while True:
            kind, body = self._receive()
            if kind == protocol.DONE:
                return json.loads(body)
            if kind == protocol.OUTPUT:
                self.outputs.append(json.loads(body))
            elif kind == protocol.SYNC:
                self._send(protocol.SYNC, b"")
            elif kind == protocol.RECORDS:
                self._ring[64:72] = self._ring[:8]
                self._send(protocol.RECORDS, b"")
            elif kind == protocol.STOP:
                self._send(protocol.COMMAND, self._next_command())
            elif kind == protocol.VALUE:
                self.stops.append(json.loads(body))
                self._send(protocol.COMMAND, self._next_command())

    def run(self, code: str, **job) -> dict:
        self.start(code, **job)
        return self.wait()

    def _next_command(self) -> bytes:
        return protocol.encode(self._commands.pop(0) if self._commands else {"do": "resume", "mode": "continue"})

    def _send(self, kind: int, body: bytes) -> None:
        self._socket.sendall(protocol.encode_frame(kind, body))

    def _receive(self) -> "tuple[int, bytes]":
        head = self._file.read(5)
        if len(head) < 5:
            raise AssertionError(f"the guest ended with status {self._process.wait(TIMEOUT)}")
        size, kind = struct.unpack(">IB", head)
        return kind, self._file.read(size)


@pytest.fixture
def new_guest(extension):
    """Starts guests, which end with the test."""
    with contextlib.ExitStack() as guests:

        def start() -> Guest:
            guest = Guest(extension.__file__)
            guests.callback(guest.close)
            return guest

        yield start


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
time.monotonic()
""".strip().splitlines()

ALL_SOURCES = f"""
import concurrent.futures, datetime, email.generator, email.utils, json, logging, os, queue, random, secrets, tempfile
import asyncio, threading, time, uuid
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


def differences(first: dict, second: dict) -> set:
    """Returns the names of values that differ. Both are results with the same names."""
    assert first.get("exception") is None and second.get("exception") is None, (first, second)
    assert first["result"].keys() == second["result"].keys()
    return {name for name, value in first["result"].items() if value != second["result"][name]}


def test_a_run_is_repeated(new_guest):
    original = new_guest().run(ALL_SOURCES)
    replay = new_guest().run(ALL_SOURCES, clock=original["clock"])
    assert len(base64.b64decode(original["clock"])) > 100
    assert differences(original, replay) == set()
    assert "clock_missing" not in original and "clock_missing" not in replay
    assert replay["clock"] == ""
