"""Measures the cost of recording: nanoseconds added to a line, and the ratio to the program without it.

An empty tracer is measured for comparison. The variants run in turn, and the fastest run of each counts.
"""

import json
import mmap
import os
import pathlib
import subprocess
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "guest"))

import programs  # noqa: E402
import recorder_factory  # noqa: E402
import recorder_ring  # noqa: E402

FILE = "<execution 1>"

LOOP = """
def f(n):
    t = 0
    for i in range(n):
        t += i
    return t
f(40000)
"""

CALLS = """
def add(a, b):
    return a + b
def f(n):
    t = 0
    for i in range(n):
        t = add(t, i)
    return t
f(15000)
"""

SCRIPT = (pathlib.Path(__file__).parents[3] / "cmd" / "bench" / "analysis.py").read_text()


class Ring(recorder_ring.Ring):
    """A ring that is emptied without reading it, so that the measurement excludes the reader."""

    def __init__(self):
        super().__init__(mmap.mmap(-1, recorder_ring.HEAD_BYTES + recorder_ring.RING_BYTES), self.empty)
        self.places = memoryview(self.memory)[: recorder_ring.HEAD_BYTES].cast("Q")
        self.size = 0

    def empty(self) -> None:
        self.places[8] = self.places[0]

    def close(self) -> None:
        self.size = self.places[0]
        self.places.release()
        super().close()


class Channel:
    interrupted = False

    def open_ring(self) -> Ring:
        self.given = Ring()
        return self.given


def once(source: str, how: str) -> "tuple[float, int, int]":
    """Returns the seconds, steps and bytes of one run."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    names, channel, count = main.__dict__, Channel(), 0
    code = compile(source, FILE, "exec")

    def local(frame, event, arg):
        return local

    def empty(frame, event, arg):
        return local if frame.f_code.co_filename == FILE else None

    watch = (
        recorder_factory.new_recorder(channel, FILE, names, (), fast=how == "extension")
        if how in ("python", "extension")
        else None
    )
    begun = time.perf_counter()
    if watch:
        watch.start()
    elif how == "empty":
        sys.settrace(empty)
    exec(code, names)
    if watch:
        watch.stop()
        count = watch.steps
    elif how == "empty":
        sys.settrace(None)
    seconds = time.perf_counter() - begun
    return seconds, count, channel.given.size if watch else 0


def measure() -> dict:
    """Returns, for each program and recorder, the nanoseconds added to a line, the ratio and the bytes of a step."""
    has_extension = recorder_factory._fast is not None
    kinds = ["alone", "empty", "python", *(["extension"] if has_extension else [])]
    out: dict = {}
    for name, source in (("tight loop", LOOP), ("calls", CALLS), ("pandas script", SCRIPT)):
        try:
            once(source, "alone")
        except ImportError:
            continue
        best: dict = {}
        for _ in range(5):
            for how in kinds:
                got = once(source, how)
                best[how] = min(best.get(how, got), got)
        alone, steps = best["alone"][0], best["python"][1]
        for how in kinds[1:]:
            seconds, _, size = best[how]
            out[f"{name}, {how}"] = (seconds - alone) / steps * 1e9, seconds / alone, size / steps
    return out


def extension_folder(python: str) -> str:
    """Returns the folder of the extension for an interpreter, or "" if it cannot be built here."""
    try:
        return str(programs.extension("recorder_fast", python).parent)
    except subprocess.CalledProcessError:
        return ""


def main() -> None:
    """Prints a table with a column for each interpreter in the arguments, or for each version of Python on this
    machine. With --json, it measures this one."""
    if "--json" in sys.argv:
        print(json.dumps([sys.version.split()[0], measure()]))
        return
    columns = {}
    for python in sys.argv[1:] or programs.interpreters().values():
        done = subprocess.run(
            [python, __file__, "--json"],
            env={**os.environ, "PYTHONPATH": extension_folder(python)},
            capture_output=True,
            text=True,
            check=True,
        )
        version, column = json.loads(done.stdout.splitlines()[-1])
        columns[version] = column
    print("ns added to a line, ratio to the program alone, bytes a step; - is not built or not installed here")
    print(f"{'':32}" + "".join(f"{version:>26}" for version in columns))
    for name in dict.fromkeys(name for column in columns.values() for name in column):
        cells = (column.get(name) for column in columns.values())
        shown = ("-" if c is None else f"{c[0]:.0f} ns  {c[1]:.1f}x  {c[2]:.2f} B" for c in cells)
        print(f"{name:32}" + "".join(f"{cell:>26}" for cell in shown))


if __name__ == "__main__":
    main()
