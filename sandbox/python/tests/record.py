"""Runs programs with and without the recorder, in the interpreter that runs this file.

It reads lines from stdin, each a JSON object {"name", "code", "limits", "stops", "moves"}, and writes a line with the
JSON list of the results for each to stdout. At its first stop a program continues with the first move, and so on; the
last move is repeated.
"""

import base64
import contextlib
import gc
import io
import json
import linecache
import os
import pathlib
import sys
import threading
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "guest"))

import debug_control  # noqa: E402
import protocol  # noqa: E402
import recorder_budget  # noqa: E402
import recorder_factory  # noqa: E402
import recording  # noqa: E402
import supervisor_ring  # noqa: E402

FILE = "<execution 1>"


class Channel:
    """The supervisor's side of a recorded program. stops has what the recording shows at each stop."""

    interrupted = attention = False

    def __init__(self, moves=()):
        self.data, self.moves = bytearray(), list(moves)
        self.stops, self.logs, self.held = [], [], []
        self.request_lock = threading.RLock()

    def open_ring(self):
        self.ring = supervisor_ring.Ring(self.data)
        return self.ring

    def pause(self):
        self.attention = True

    def log(self, entry):
        self.logs.append(entry["text"])

    def send(self, kind, body):
        if kind != protocol.STOP:
            return
        self.ring.take()
        seen = recording.Reader(self.data)
        assert seen.step == body["step"] and self.ring.held() == 0
        self.stops.append([body["reason"], body["step"], body["text"], *seen.stack()])

    def receive(self):
        move = self.moves.pop(0) if len(self.moves) > 1 else self.moves[0]
        return protocol.COMMAND, json.dumps({"do": "resume", "mode": move}).encode()


def run(source: str, watched: bool, fast: bool = False, stops=None, moves=()) -> dict:
    """Runs a program in a new namespace. Its variable r is its result."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    gc.enable()
    gc.collect()  # otherwise a suspended generator of an earlier program may be closed, and recorded, during this one
    gc.disable()  # so that objects die at the same step with each recorder
    names, channel, count = main.__dict__, Channel(moves), 0
    names["pause"] = channel.pause
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    code = compile(source, FILE, "exec")
    program = types.FunctionType(code, names)  # exec uses more stack while it is traced
    watch = recorder_factory.new_recorder(channel, FILE, names, ("pause",), fast=fast) if watched else None
    if watch and stops is not None:
        watch.control = debug_control.DebugControl(watch, channel, names, stops, [], [code])
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        if watch:
            watch.start()
        try:
            program()
        except BaseException as raised:
            error = raised
        finally:
            if watch:
                watch.stop()
                count = watch.steps
    failed = None
    if error is not None:
        lines, trace = [], error.__traceback__
        while trace is not None:
            lines.append(trace.tb_lineno)
            trace = trace.tb_next
        failed = [type(error).__name__, str(error), lines[1:]]
    same = {"stdout": printed.getvalue(), "result": repr(names.get("r")), "error": failed}
    records = base64.b64encode(channel.data).decode()
    return {"same": same, "count": count, "records": records, "stops": channel.stops, "logs": channel.logs}


def main() -> None:
    asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)  # a program reads no other program
    os.dup2(2, 1)  # and writes no result
    for i in range(40):  # until the interpreter has specialised run
        run("x = 1", i % 2 == 1)
    for line in asked:
        case = json.loads(line)
        kept = {name: getattr(recorder_budget, name) for name in case.get("limits", {})}
        for name, value in case.get("limits", {}).items():
            setattr(recorder_budget, name, value)
        watched = run(case["code"], True, case.get("fast", False), case.get("stops"), case.get("moves", ["continue"]))
        result = [run(case["code"], False), watched]
        for name, value in kept.items():
            setattr(recorder_budget, name, value)
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
