"""Measures the cost of recording: nanoseconds added to a line, and the ratio to the program without it.

An empty tracer is measured for comparison. The variants run in turn, and the fastest run of each counts.
"""

import mmap
import pathlib
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "guest"))

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


def main() -> None:
    kinds = ["alone", "empty", "python", "extension"]
    for name, source in (("tight loop", LOOP), ("calls", CALLS), ("pandas script", SCRIPT)):
        try:
            once(source, "alone")
        except ImportError:
            print(f"{name}: not run, pandas is not here")
            continue
        best: dict = {}
        for _ in range(5):
            for how in kinds:
                got = once(source, how)
                best[how] = min(best.get(how, got), got)
        alone, steps = best["alone"][0], best["python"][1]
        for how in kinds[1:]:
            seconds, _, size = best[how]
            added = (seconds - alone) / steps * 1e9
            print(
                f"{name}, {steps} lines: {how} {added:.0f} ns a line, {seconds / alone:.1f}x, {size / steps:.2f} bytes a step"
            )


if __name__ == "__main__":
    main()
