"""The plain line tracer: one step for each line of user code that ran.

A step is sent when the next event comes: the next line, a return, an exception, or a
call into user code, where "during_call" says that the line is not over. The end of
such a line is a step of its own only where it failed, or where it ends its frame
having changed something: so no change goes unseen.

It must not change the program. It runs no code of the user's objects; and where a
frame shares variables with a closure it leaves them unread before Python 3.13, because
reading f_locals there writes old values back. One change remains before 3.13: a dict
that a function keeps from its own locals() shows later values, as under any tracer.
"""

import builtins
import itertools
import linecache
import sys
import threading
import types

import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_STEPS = 100_000
MAX_VARIABLES = 50

_getline, _settrace = linecache.getline, sys.settrace
_INNER = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}  # no lines of their own
_PROXY = sys.version_info >= (3, 13)  # f_locals is a view that writes nothing back
_QUIET = (StopIteration, StopAsyncIteration, GeneratorExit)  # how iteration ends


class _Line:
    """A line that runs in one frame: its number, whether its step was sent at a call
    that it made, and the exception that it is in."""

    __slots__ = ("number", "sent", "error")

    def __init__(self, number: int):
        self.number, self.sent, self.error = number, False, None


class Tracer:
    """Traces code compiled under filename from start to stop; hidden are the names of the
    helpers. count is the number of steps."""

    def __init__(self, channel, filename: str, names: dict, hidden):
        self._channel = channel
        self._filename = filename
        self._names = names
        self._hidden = frozenset(hidden)
        self._lines: dict = {}  # frame to its _Line
        self._seen: dict = {}  # frame to its variables at its last step
        self._module: dict = {}
        self._numbers = itertools.count(1)
        self.count = 0

    def start(self) -> None:
        self._module = self._show(self._names, True)
        threading.settrace(self._call)
        _settrace(self._call)

    def stop(self) -> None:
        _settrace(None)
        threading.settrace(None)
        self._lines.clear()
        self._seen.clear()

    def _call(self, frame, event, _arg):
        if frame.f_code.co_filename != self._filename:
            return None
        try:
            self._calling(frame.f_back)
            if frame.f_code.co_name in _INNER:
                return None
            if frame.f_code.co_name != "<module>":
                self._seen[frame] = self._variables(frame)
        except Exception:
            pass  # at the recursion limit: the frame goes unread, the program meets its own error
        return self._event

    def _calling(self, frame) -> None:
        """The user's line that this call comes from: its step is sent now."""
        while frame is not None:
            if frame.f_code.co_filename == self._filename and frame.f_code.co_name not in _INNER:
                line = self._lines.get(frame)
                if line is not None and not line.sent:
                    line.sent = True
                    self._step(frame, line.number, {"status": "executed", "during_call": True})
                return
            frame = frame.f_back

    def _event(self, frame, event, arg):
        try:
            self._over(frame, event, arg)
        except Exception:
            self._lines.pop(frame, None)
        return self._event

    def _over(self, frame, event, arg) -> None:
        line = self._lines.get(frame)
        if event == "exception":
            if line is not None:
                line.error = arg[0], arg[1]
                if not issubclass(arg[0], _QUIET):
                    del self._lines[frame]
                    self._step(frame, line.number, _failed(line.error))
            return
        if line is not None:
            del self._lines[frame]
            if event == "return" and line.error is not None and arg is None:
                self._step(frame, line.number, _failed(line.error))
            elif not line.sent:
                self._step(frame, line.number, {"status": "executed"})
            elif event == "return":
                self._step(frame, line.number, {"status": "executed"}, only_changes=True)
        if event == "line":
            self._lines[frame] = _Line(frame.f_lineno)
        elif event == "return":
            self._seen.pop(frame, None)

    def _step(self, frame, line: int, result: dict, only_changes: bool = False) -> None:
        if self.count > MAX_STEPS:
            return
        variables = self._variables(frame)
        module = frame.f_code.co_name == "<module>"
        before = self._module if module else self._seen.get(frame, {})
        changed = [name for name, shown in variables.items() if before.get(name) != shown]
        if only_changes and not changed and len(before) == len(variables):
            return
        if module:
            self._module = variables
        elif frame in self._seen:
            self._seen[frame] = variables
        state = {"variables": variables, "changed": changed, "function": values.readable(frame.f_code.co_name, 200)}
        if not module and not _readable(frame.f_code):
            state["unread"] = "this frame shares variables with a closure; reading them would change the program"
        self.count = next(self._numbers)
        if self.count > MAX_STEPS:
            result, state = {"status": "lost", "error": f"only the first {MAX_STEPS} steps are kept"}, {"variables": {}, "changed": []}
        text = values.readable(_getline(self._filename, line).rstrip(), 500)
        self._channel.step({"step": self.count, "line_number": line, "line_code": text, "result": result, "state": state})

    def _variables(self, frame) -> dict:
        if frame.f_code.co_name == "<module>":
            return self._show(frame.f_globals, True)
        if not _readable(frame.f_code):
            return {}
        return self._show(frame.f_locals, False)

    def _show(self, source, module: bool) -> dict:
        out: dict = {}
        for name, value in list(source.items()):
            if name[:2] == "__" and name != "__result__" or name[:1] == ".":
                continue
            if module and (name in self._hidden or _furniture(type(value))):
                continue
            out[values.readable(name, 100)] = values.preview(value)
            if len(out) >= MAX_VARIABLES:
                break
        return out


def _furniture(kind: type) -> bool:
    """Whether this is the kind of what code defines and imports, rather than computes."""
    return kind is types.ModuleType or kind is types.FunctionType or kind is types.BuiltinFunctionType or issubclass(kind, type)


def _readable(code) -> bool:
    """Whether reading the frame's locals leaves the program as it is. __class__ is the
    cell that super() needs, and never changes."""
    return _PROXY or not code.co_cellvars and set(code.co_freevars) <= {"__class__"}


def _failed(error) -> dict:
    """The exception by its type, and its message where reading that runs no user code."""
    kind, value = error
    text = values.name_of(kind)
    if values.type_name(value).find(".") < 0 and vars(builtins).get(text) is kind:
        args = vars(BaseException)["args"].__get__(value)
        if len(args) == 1 and type(args[0]) is str:
            text += ": " + values.readable(args[0], 300)
    return {"status": "exception", "error": text}
