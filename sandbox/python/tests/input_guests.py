"""Guests of tests whose clocks and randomness are repeated. Each is a process of its own."""

import base64
import json
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import sys

import programs
import protocol
import recorder_ring

GUEST = pathlib.Path(__file__).parents[1] / "guest"
SEED, OTHER_SEED = "5e" * 32, "0123456789abcdef" * 4
TIMEOUT = 60  # seconds for a frame; it only ends a guest that hangs

SERVE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
sys.path[:0] = sys.argv[2:]
if len(sys.argv) == 4:
    sys.modules["recorder_fast"] = None  # it may be installed
import numpy, pandas, numpy.random
import guest
one = guest.Guest({}, [], {}, {"enabled": False}, False)
one._channel.send(guest.protocol.READY, {})
try:
    while one._serve(one._channel):
        pass
except EOFError:
    pass
"""


class Guest:
    """A guest without a zygote, which does not lock itself down."""

    def __init__(self, extension: str, preload: bool, has_fast_recorder: bool):
        ours, theirs = socket.socketpair()
        ours.settimeout(TIMEOUT)
        extensions = [os.path.dirname(extension)]
        if has_fast_recorder:
            extensions.append(os.path.dirname(programs.extension("recorder_fast", sys.executable)))
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(theirs.fileno()), str(GUEST), *extensions],
            pass_fds=[theirs.fileno()],
            stdout=subprocess.DEVNULL,
            env={"LD_PRELOAD": extension} if preload else {},
        )
        theirs.close()
        self._socket, self._file = ours, ours.makefile("rb")
        self.pid = self._process.pid
        self.outputs: list = []
        self.answers: list = []  # to commands
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
        self.outputs, self.answers = [], []
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
                self.answers.append(json.loads(body))
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


def differences(first: dict, second: dict) -> set:
    """Returns the names of values that differ. Both are Dones whose results have the same names."""
    assert first.get("exception") is None and second.get("exception") is None, (first, second)
    assert first["result"].keys() == second["result"].keys()
    return {name for name, value in first["result"].items() if value != second["result"][name]}


def readings(clock: str) -> "dict[int, list[int]]":
    """Returns the readings of each clock in a log, in nanoseconds."""
    data, at, found = base64.b64decode(clock), 0, {}

    def varint() -> int:
        nonlocal at
        n = shift = 0
        while True:
            n |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                return n

    while at < len(data):
        head, delta = varint(), varint()
        of_clock = found.setdefault(head >> 1, [0])
        for _ in range(varint() + 2 if head & 1 else 1):
            of_clock.append(of_clock[-1] + (delta >> 1 ^ -(delta & 1)))
    return {id: of_clock[1:] for id, of_clock in found.items()}


def run_preloaded(extension, code: str) -> str:
    """Returns what a program prints that has the extension preloaded, as e."""
    folder = os.path.dirname(extension.__file__)
    begin = f"import os, sys, time\nsys.path.insert(0, {folder!r})\nimport syscall_batch as e\n"
    done = subprocess.run(
        [sys.executable, "-I", "-c", begin + code],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={"LD_PRELOAD": extension.__file__},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()
