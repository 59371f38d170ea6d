"""Runs programs with and without the recorder, in the interpreter that runs this file.

It reads a JSON list of {"name", "code", "limits"} from stdin and writes a JSON list of results to stdout.
"""

import base64
import contextlib
import io
import json
import linecache
import pathlib
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "guest"))

import recorder_budget  # noqa: E402
import recorder_factory  # noqa: E402
import supervisor_ring  # noqa: E402

FILE = "<execution 1>"


class Channel:
    interrupted = False

    def __init__(self):
        self.data = bytearray()

    def open_ring(self):
        return supervisor_ring.Ring(self.data)


def run(source: str, watched: bool, fast: bool = False) -> dict:
    """Runs a program in a new namespace. Its variable r is its result."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    names, channel, count = main.__dict__, Channel(), 0
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    code = compile(source, FILE, "exec")
    program = types.FunctionType(code, names)  # exec uses more stack while it is traced
    watch = recorder_factory.new_recorder(channel, FILE, names, (), fast=fast) if watched else None
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
    return {"same": same, "count": count, "records": base64.b64encode(channel.data).decode()}


def main() -> None:
    out = []
    for i in range(40):  # until the interpreter has specialised run
        run("x = 1", i % 2 == 1)
    for case in json.load(sys.stdin):
        kept = {name: getattr(recorder_budget, name) for name in case.get("limits", {})}
        for name, value in case.get("limits", {}).items():
            setattr(recorder_budget, name, value)
        out.append([run(case["code"], False), run(case["code"], True, case.get("fast", False))])
        for name, value in kept.items():
            setattr(recorder_budget, name, value)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
