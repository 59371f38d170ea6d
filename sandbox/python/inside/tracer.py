"""The plain line tracer: one step for each line of user code that ran, sent when
the next event of its frame comes. It runs no code of the user's objects, and reads
the locals of a frame only where that cannot change the program."""

import linecache
import sys

import values

MAX_STEPS = 100_000
MAX_VARIABLES = 50


class Tracer:
    def __init__(self, channel, filename: str, hidden: set):
        self._channel = channel
        self._filename = filename
        self._hidden = hidden
        self._pending: dict = {}  # frame to the line that is running in it
        self._last: dict = {}  # frame to its variables at the last step
        self.count = 0

    def start(self) -> None:
        sys.settrace(self._call)

    def stop(self) -> None:
        sys.settrace(None)

    def _call(self, frame, event, _arg):
        return self._line if frame.f_code.co_filename == self._filename else None

    def _line(self, frame, event, arg):
        line = self._pending.pop(frame, None)
        if line is not None:
            self._step(frame, line, event, arg)
        if event == "line":
            self._pending[frame] = frame.f_lineno
        elif event == "return":
            self._last.pop(frame, None)
        return self._line

    def _step(self, frame, line: int, event: str, arg) -> None:
        self.count += 1
        if self.count > MAX_STEPS:
            if self.count == MAX_STEPS + 1:
                self._send(line, {"status": "lost", "error": f"only the first {MAX_STEPS} steps are kept"}, {}, [], frame)
            return
        variables = self._variables(frame)
        before = self._last.get(frame, {})
        changed = [name for name, shown in variables.items() if before.get(name) != shown]
        self._last[frame] = variables
        result = {"status": "executed"}
        if event == "exception":
            kind = arg[0]
            result = {"status": "exception", "error": getattr(kind, "__name__", str(kind))}
        self._send(line, result, variables, changed, frame)

    def _send(self, line, result, variables, changed, frame) -> None:
        state = {"variables": variables, "changed": changed, "function": frame.f_code.co_name}
        if frame.f_code.co_cellvars or frame.f_code.co_freevars:
            state["unread"] = "this frame shares variables with a closure; reading them would change the program"
        code = linecache.getline(self._filename, line).rstrip()[:500]
        self._channel.step({"step": self.count, "line_number": line, "line_code": code, "result": result, "state": state})

    def _variables(self, frame) -> dict:
        if frame.f_code.co_name == "<module>" or frame.f_locals is frame.f_globals:
            source = frame.f_globals
        elif frame.f_code.co_cellvars or frame.f_code.co_freevars:
            return {}  # f_locals would write stale cells back on 3.11 and 3.12
        else:
            source = frame.f_locals
        out = {}
        for name, value in list(source.items()):
            if name[:2] == "__" or name in self._hidden and source is frame.f_globals:
                continue
            if type(value).__name__ in ("module", "function", "type") and source is frame.f_globals:
                continue
            out[name] = values.preview(value)
            if len(out) >= MAX_VARIABLES:
                break
        return out
