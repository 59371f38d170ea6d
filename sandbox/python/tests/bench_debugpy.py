"""Measures the cost of debugpy for the programs of bench_recorder.py.

A client is attached without a breakpoint, or with one whose condition never holds, in the line that runs most often. The
variants run in turn, and the fastest run of each counts.
"""

import importlib.util
import json
import pathlib
import socket
import subprocess
import sys
import tempfile

import bench_recorder

PROGRAMS = (
    ("tight loop", bench_recorder.LOOP, "t += i"),
    ("calls", bench_recorder.CALLS, "t = add("),
    ("pandas script", bench_recorder.SCRIPT, "stats[name].add("),
)

# Runs the program once for its imports. If it is debugged, it then prints its port and waits for a client. Then it prints
# how long the program takes.
CHILD = """
import sys, time, types
path, debugged = sys.argv[1], len(sys.argv) > 2
exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__"})
if debugged:
    import debugpy
    print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
    debugpy.wait_for_client()
main = types.ModuleType("__main__")
sys.modules["__main__"] = main
code = compile(open(path).read(), path, "exec")
begun = time.perf_counter()
exec(code, main.__dict__)
print(time.perf_counter() - begun, flush=True)
"""


class Client:
    """Speaks the part of the Debug Adapter Protocol that is needed to attach."""

    def __init__(self, port: int):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._in = self._socket.makefile("rb")
        self._seq = 0

    def send(self, command: str, arguments: dict) -> None:
        self._seq += 1
        body = json.dumps({"seq": self._seq, "type": "request", "command": command, "arguments": arguments}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def wait(self, kind: str, name: str) -> None:
        """Reads until an event, or the response to a request."""
        while True:
            size = 0
            while (line := self._in.readline().strip()) != b"":
                size = int(line.split(b":")[1])
            message = json.loads(self._in.read(size))
            if message.get(kind) == name:
                if message.get("success") is False:
                    raise RuntimeError(f"debugpy refuses {name}: {message.get('message')}")
                return

    def attach(self, path: str, breakpoints: list) -> None:
        self.send("initialize", {"adapterID": "bench"})
        self.wait("command", "initialize")
        self.send("attach", {"justMyCode": True})
        self.wait("event", "initialized")
        self.send("setBreakpoints", {"source": {"path": path}, "breakpoints": breakpoints})
        self.wait("command", "setBreakpoints")
        self.send("configurationDone", {})
        self.wait("command", "attach")


def once(path: str, breakpoints: "list | None") -> float:
    """Seconds of one run; None is without debugpy."""
    command = [sys.executable, "-c", CHILD, path]
    if breakpoints is None:
        return float(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=120).stdout)
    with subprocess.Popen(
        [*command, "debugged"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        try:
            assert child.stdout is not None
            client = Client(int(child.stdout.readline()))
            client.attach(path, breakpoints)
            return float(child.stdout.readline())
        finally:
            child.kill()


def main() -> None:
    if importlib.util.find_spec("debugpy") is None:
        print(
            "debugpy: not run, it is not here; quoted from another machine: 34 ns a line and 3728 with a condition that never holds in a"
            " tight loop, 421 and 1749 in a pandas script (2.6x and 7.7x)"
        )
        return
    for name, source, hot in PROGRAMS:
        if "pandas" in source and importlib.util.find_spec("pandas") is None:
            print(f"{name}: not run, pandas is not here")
            continue
        steps = bench_recorder.once(source, "python")[1]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "program.py")
            file.write_text(source)
            line = next(n for n, text in enumerate(source.splitlines(), 1) if hot in text)
            kinds: dict = {
                "alone": None,
                "no breakpoint": [],
                "a condition that never holds": [{"line": line, "condition": "0 > 1"}],
            }
            best: dict = {}
            for _ in range(3):
                for kind, breakpoints in kinds.items():
                    best[kind] = min(best.get(kind, 1e9), once(str(file), breakpoints))
        for kind in list(kinds)[1:]:
            added = (best[kind] - best["alone"]) / steps * 1e9
            print(f"{name}, {steps} lines: debugpy, {kind} {added:.0f} ns a line, {best[kind] / best['alone']:.1f}x")


if __name__ == "__main__":
    main()
