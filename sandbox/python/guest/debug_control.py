"""Decides where a debugged program stops, and executes the supervisor's commands while it is stopped.

The recorder calls DebugControl at each line and each exception, under its lock: while one thread is stopped here, the
others get no further than their next line. The supervisor sends the breakpoints when the run begins and with each
resume. To a running program it sends a signal, which stops the program at its next line.

Expressions are the user's code and run in the stopped process: they can change it.
"""

import ast
import bisect
import builtins
import keyword
import re
import threading
import typing

import debug_expressions
import inputs
import lookup
import own_texts
import protocol
import recorder_objects
import step_targets
import table_rows
import value_pages
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_MESSAGE = 10_000  # characters of an exception's message
MAX_PAGE = 500  # items of a page
MAX_PAGE_VALUE = 300  # characters of an item in a page
MAX_LABEL = 100  # characters of a label of a row
MAX_COMPLETIONS = 200
MAX_EARLIER = 5  # exceptions that led to one
MAX_INNER = 20  # frames of code that the program has made
FIRST_INNER = 1 << 40  # the number of the first of them; recorded frames have smaller ones
MAX_RAISES = 200  # exceptions whose places are known; most are handled at once

MAX_VALUE = debug_expressions.MAX_VALUE
_active = threading._active  # type: ignore[attr-defined]
_args_of, _traceback_of = (vars(BaseException)[name].__get__ for name in ("args", "__traceback__"))
_flags_of, _mro_of, _vars_of = (vars(type)[name].__get__ for name in ("__flags__", "__mro__", "__dict__"))
_cause_of, _context_of, _suppresses = (
    vars(BaseException)[name].__get__ for name in ("__cause__", "__context__", "__suppress_context__")
)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: Python code may have made the class
_SCALARS = {str, bytes, int, float, bool, type(None)}


class _Raise:
    """Where an exception was raised, and the frames that it has left, of which the user's have numbers."""

    def __init__(self, step: int, line: int):
        self.step, self.line = step, line
        self.frames: dict[int, int] = {}  # numbers, by the ids of frames, which the exception's traceback holds
        self.has_stopped = False  # the program has stopped there


class DebugControl:
    """Decides where a program stops. breakpoints, from the supervisor, has lines, data, exceptions and entry.
    executable has the lines of the program that have code, in order; empty: each line may have some. codes is the
    program, compiled."""

    def __init__(self, recorder, channel, names: dict, breakpoints: dict, executable: list, codes: list):
        self._recorder = recorder
        self._channel = channel
        self._names = names
        self.lines: dict = {}
        self._executable = executable
        self._codes = codes
        self._bound: set | None = None
        self._texts = own_texts.OwnTexts()
        self._tables = table_rows.Tables()
        self._paged: tuple = ()  # an expression with its frame, and the value whose rows were asked for last
        self._data: list = []  # data breakpoints: id, frame, name
        self._tokens: dict = {}  # of their values, by id
        self._stopped_frame = None
        self.stopped_thread = 0  # the id of the thread that is stopped
        self._locals: dict = {}  # of frames, read since the program stopped
        self._break_on_raised = self._break_on_uncaught = False
        self._mode, self._thread = "entry" if breakpoints.get("entry") else "continue", 0
        self._step_frames: frozenset = frozenset()  # numbers of the frames in which a step ends
        self._target: tuple | None = None  # the frame and the place of the call into which a step goes
        self._step_at_root = False  # a step also ends in the run's last expression, which has a frame of its own
        self._called_in = 0  # the id of the thread that called breakpoint()
        self._raises: dict[int, _Raise] = {}  # by the id of the exception, the latest last
        self._left: dict = {}  # frames that an uncaught exception has left, by their numbers
        self._has_ended = False  # the program has left all its frames
        self._stops_at_end = False  # the step that runs stops there, too
        self.set_breakpoints(breakpoints)

    def set_breakpoints(self, breakpoints: dict) -> None:
        hits = {b.id: b.hits for each in self.lines.values() for b in each}
        self.lines = {}
        for given in breakpoints.get("lines") or ():
            b = debug_expressions.LineBreakpoint(given, hits.get(given["id"], 0))
            if b.error and b.id not in hits:
                self._channel.log({"breakpoint": b.id, "error": b.error})
            at = bisect.bisect_right(self._executable, b.line)
            if at:
                b.line = self._executable[at - 1]
            if at or not self._executable:
                self.lines.setdefault(b.line, []).append(b)
        exceptions = breakpoints.get("exceptions") or ()
        self._break_on_raised, self._break_on_uncaught = "raised" in exceptions, "uncaught" in exceptions
        self._data = [(d["id"], d["frame"], d["name"]) for d in breakpoints.get("data") or ()]
        self._choose_lines()
        self._tokens = {i: token for i, token in self._tokens.items() if any(i == d[0] for d in self._data)}

    def _choose_lines(self) -> None:
        everywhere = self._data or self._step_frames or self._called_in or self._mode in ("entry", "stepIn")
        self._recorder.stop_lines = None if everywhere else self.lines

    # -- deciding

    def breakpoint_called(self, *_arguments, **_options) -> None:
        """The program called breakpoint(): it stops at the next line of this thread, as with pdb."""
        self._called_in = threading.get_ident()
        self._choose_lines()

    def line(self, frame, known, line: int) -> None:
        """Stops the program at this line, if a breakpoint, a step or a request of the supervisor asks for that."""
        reason, ids, text = "", [], ""
        if self._data:
            ids = self._changed_data()
            reason = "data breakpoint" if ids else ""
        breakpoints = self.lines.get(line, ())
        for b in breakpoints if breakpoints and not _is_within(frame, self._recorder._filename) else ():
            with inputs.Pause():  # conditions and the expressions of log points are not of the program
                why = self._hit(b, frame)
            if why is not None:
                ids.append(b.id)
                reason, text = "breakpoint", text or why
        if not reason and (
            self._mode == "entry"
            or known.number in self._step_frames
            or self._thread == known.thread
            and (self._mode == "stepIn" or self._step_at_root and not known.parent)
            or self._target
            and self._thread == known.thread
            and step_targets.is_called_from(frame.f_back, *self._target)
        ):
            reason = "entry" if self._mode == "entry" else "step"
        if not reason and self._called_in == threading.get_ident():
            reason = "breakpoint"
        if not reason and self._channel.attention:
            reason = "attention"
        if reason:
            self._stop(frame, known, {"reason": reason, "ids": ids, "text": text}, self._recorder.steps)

    def raised(self, frame, known, error, trace=None) -> None:
        """Stops the program where an exception is raised, if the filter asks for that. It is called for each of the
        user's frames that the exception reaches, the innermost first."""
        if issubclass(type(error), KeyboardInterrupt):  # of a cancel or a limit
            return
        filename = self._recorder._filename
        trace = trace or _traceback_of(error)
        while trace is not None and (trace.tb_frame is frame or trace.tb_frame.f_code.co_filename != filename):
            trace = trace.tb_next
        known_raise = self._raises.get(id(error))
        if trace is None or known_raise is None:  # no inner frame of the user has raised it
            self._raises.pop(id(error), None)
            self._raises[id(error)] = known_raise = _Raise(self._recorder.steps, frame.f_lineno)
            if len(self._raises) > MAX_RAISES:
                del self._raises[next(iter(self._raises))]
        known_raise.frames[id(frame)] = known.number
        if trace is None and self._break_on_raised:
            known_raise.has_stopped = True
            self._stop_at_exception(frame, known, error, self._recorder.steps)

    def uncaught(self, error) -> None:
        """Stops the program at an exception that has ended it, or a thread of it, if the filter asks for that.

        Only now is it known that nothing handles the exception: an except clause may name another type or raise it
        again, and library code may handle it. The frames that it has left are still there, in its traceback, and the
        position of the stop is the step that raised it.
        """
        found = self._raises.pop(id(error), None) or self._origin(_traceback_of(error))
        if not self._break_on_uncaught or issubclass(type(error), KeyboardInterrupt) or found and found.has_stopped:
            return
        numbers, frame, trace = found.frames if found else {}, None, _traceback_of(error)
        inner: list = []  # frames of unrecorded code of the program, and their lines
        with self._recorder._lock:
            while trace is not None:
                number = numbers.get(id(trace.tb_frame))
                if number:
                    frame = self._left[number] = trace.tb_frame
                    inner.clear()
                elif debug_expressions.is_generated(trace.tb_frame):
                    inner = [*inner[-MAX_INNER + 1 :], (trace.tb_frame, trace.tb_lineno)]
                trace = trace.tb_next
            shown = []
            for i, (each, line) in enumerate(inner, FIRST_INNER):
                self._left[i] = each
                shown.append({"frame": i, "function": values.readable(each.f_code.co_qualname, 200), "line": line})
            self._stop_at_exception(frame, None, error, found.step if found else self._recorder.steps, shown)
            self._left.clear()

    def _origin(self, trace) -> "_Raise | None":
        """Returns where the exceptions of a traceback were raised: what except* leaves of a group is a new one."""
        innermost: typing.Any = None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._recorder._filename:
                innermost = trace
            trace = trace.tb_next
        for each in reversed(self._raises.values()) if innermost is not None else ():
            if id(innermost.tb_frame) in each.frames and each.line == innermost.tb_lineno:
                return each
        return None

    def _stop_at_exception(self, frame, known, error, step: int, inner=()) -> None:
        why = {"reason": "exception", "ids": [], "text": values.name_of(type(error)), "message": _message(error)}
        why["earlier"], why["inner"] = _earlier(error), list(inner)
        self._stop(frame, known, why, step)

    def ended(self) -> None:
        """Stops the program at its end if its last line called breakpoint(), or if a step shall stop there: no line
        comes after it."""
        called = self._called_in == threading.get_ident()
        if called or self._stops_at_end:
            with self._recorder._lock:
                self._has_ended, self._stops_at_end = True, False
                reason = "breakpoint" if called else "end"
                self._stop(None, None, {"reason": reason, "ids": [], "text": ""}, self._recorder.steps)

    def _hit(self, b: debug_expressions.LineBreakpoint, frame) -> str | None:
        """Counts a hit. Returns a text for the stop, or None to go on; a log point logs its text and goes on.

        As the Debug Adapter Protocol says, a line that is reached is a hit only if the condition holds.
        """
        if b.error:
            return b.error
        try:
            if b.condition is not None and not self._value(b.condition, frame):
                return None
        except NameError as error:
            if not self._is_unbound(error, frame.f_code):
                return f"the condition failed: {values.name_of(type(error))}"
            return None  # such as the variable of a loop, at the line of the loop
        except Exception as error:
            return f"the condition failed: {values.name_of(type(error))}"
        if not b.wants_hit():
            return None
        if b.log is None:
            return ""
        self._channel.log({"text": b.log.text(lambda expression: self._value(expression, frame)), "line": b.line})
        return None

    def _is_unbound(self, error: NameError, code) -> bool:
        if self._bound is None:
            self._bound = debug_expressions.bound_names(self._codes)
        return debug_expressions.is_unbound(error, code, self._bound)

    def _changed_data(self) -> list:
        """Returns the ids of the data breakpoints whose variables have changed since the last call."""
        ids, recorder = [], self._recorder
        for number, holder, name in self._data:
            if holder == 0:
                recorder._read_namespace((name,))
                recorded = recorder._recorded
            else:
                recorded = next((k.recorded for _, k in recorder._live_frames() if k.number == holder), {})
            token = _token(recorded.get(name), 0) if name in recorded else None
            if self._tokens.setdefault(number, token) != token:
                self._tokens[number] = token
                ids.append(number)
        return ids

    def forget_objects(self) -> None:
        """Forgets the state of the objects in data breakpoints, because their numbers have changed."""
        self._tokens = {i: token for i, token in self._tokens.items() if token is None or len(token) == 2}

    # -- stopped

    def _stop(self, frame, known, why: dict, step: int) -> None:
        """Tells the supervisor that the program is stopped, and runs its commands until it resumes the program.

        step is the position of the stop. known is None if the program has left frame: then no step begins in it.
        """
        channel, recorder = self._channel, self._recorder
        if not recorder.send_all():
            return  # a stop without its records would show another place
        why["step"] = step
        channel.attention = False
        self._called_in = 0
        self._stopped_frame, self.stopped_thread = frame, threading.get_ident()
        with channel.request_lock, inputs.Pause():
            channel.send(protocol.STOP, why)
            while True:
                kind, body = channel.receive()
                if kind != protocol.COMMAND:
                    continue
                command = protocol.decode(body)
                if command.get("calm"):
                    channel.interrupted = False  # the interrupt was for an expression that had just ended
                if "stops" in command:
                    self.set_breakpoints(command["stops"])
                if command["do"] == "resume":
                    if "mode" in command:
                        self._stops_at_end = bool(command.get("end"))
                    break
                channel.send(protocol.VALUE, self._answer(command))
        self._changed_data()  # changes that commands have made do not count
        self._stopped_frame, self.stopped_thread = None, 0
        self._locals.clear()
        self._forget_rows()
        self._choose_lines()
        self._target = None
        if "mode" in command and known is not None:
            if command.get("place"):
                self._target = frame, command["place"]
            self._begin_step(known, "next" if self._target else command["mode"])

    def _begin_step(self, known, mode: str) -> None:
        self._mode = mode
        self._thread, self._step_frames, self._step_at_root = known.thread, frozenset(), False
        if mode in ("next", "stepOut"):
            by_number = {k.number: k for _, k in self._recorder._live_frames()}
            each, frames = known if mode == "next" else by_number.get(known.parent), []
            while each is not None:
                if each.thread == known.thread:
                    frames.append(each.number)
                    self._step_at_root = not each.parent
                each = by_number.get(each.parent)
            self._step_frames = frozenset(frames)
        self._choose_lines()

    def _answer(self, command: dict) -> dict:
        try:
            number = command.get("frame", 0)
            frame = next((f for f, known in self._recorder._live_frames() if known.number == number), None)
            frame = frame or self._left.get(number)
            if number and frame is None and not self._has_ended:
                return {"error": "this frame has ended"}
            self._texts.begin()
            if command["do"] in ("evaluate", "set"):  # it may change the rows
                self._forget_rows()
            try:
                return self._COMMANDS[command["do"]](self, frame, command)
            finally:
                if "edit" in command:  # also after an error: statements may have run in part
                    self._recorder.record_edit(frame, self._scope(frame)[1], command["edit"])
        except KeyboardInterrupt:
            return {"error": "the expression was interrupted: it took too long"}
        except BaseException as error:
            found = _args_of(error)
            message = found[0][:MAX_VALUE] if len(found) == 1 and type(found[0]) is str else ""
            name = values.name_of(type(error))
            return {"error": f"{name}: {message}" if message else name}

    def _scope(self, frame) -> tuple[dict, dict]:
        """Returns the global and the local names of a frame that can be read."""
        if frame is None or frame.f_code.co_name == "<module>" and frame.f_globals is self._names:
            found = self._names if frame is None or not frame.f_code.co_varnames else frame.f_locals
            if found is self._names:
                return self._names, self._names
            hidden = {name: found[name] for name in frame.f_code.co_varnames if name in found}  # of a comprehension
            return self._names, hidden
        if self._stopped_frame is None:
            return frame.f_globals, self._recorder.variables(frame, len(_active) == 1)
        if frame not in self._locals:  # reading them again would undo assignments
            self._locals[frame] = self._recorder.variables(frame, True)
        return frame.f_globals, self._locals[frame]

    def _value(self, expression: debug_expressions.Expression, frame):
        return debug_expressions.value(expression.code_for(frame), *self._scope(frame))

    def _value_of(self, text: str, frame):
        return debug_expressions.value(
            debug_expressions.compile_expression(text, self._class_of(frame)), *self._scope(frame)
        )

    @staticmethod
    def _class_of(frame) -> str:
        return "" if frame is None else debug_expressions.class_of(frame.f_code)

    def _evaluate(self, frame, command: dict) -> dict:
        code, is_expression = debug_expressions.compile_code(
            command["expression"].strip(), bool(command.get("statements")), self._class_of(frame)
        )
        names, local = self._scope(frame)
        is_module = frame is None or frame.f_code.co_name == "<module>"

        def assign(name, value) -> None:
            if self._recorder.locals_are_copies:
                self._recorder.assign(frame, name, value, frame is self._stopped_frame)

        value = debug_expressions.run(code, names, local, is_module, assign)
        if not is_expression:
            return {"value": "", "type": ""}
        out = self._described(value)
        return {**out, "value": self._texts.whole(value)} if command.get("whole") else out

    def _step_targets(self, frame, _command: dict) -> dict:
        return {"targets": step_targets.targets(frame) if frame is self._stopped_frame and frame else []}

    def _check(self, _frame, command: dict) -> dict:
        """Returns for each condition why it is none, or ""."""
        return {"errors": [debug_expressions.condition_error(each) for each in command["conditions"]]}

    def _described(self, value, limit: int = MAX_VALUE) -> dict:
        out: dict = {"value": self._texts.preview(value, limit), "type": values.type_name(value)}
        if self._texts.used:
            out["own"] = True
        attributes = values.attributes(value)
        size = value_pages.length(value) if attributes is None else len(attributes)
        if size is not None:
            out["length"] = size
            out["attributes"] = attributes is not None
        shape = values.shape(value)
        if shape is not None and len(shape) == 2 and values.name_of(type(value)) == "DataFrame":
            out["columns"] = shape[1]
        return out

    def _page(self, frame, command: dict) -> dict:
        start, count = command["start"], min(command["count"], MAX_PAGE)
        if not command["expression"]:  # the variables of a frame that is not recorded
            local = sorted(lookup.pairs(dict(self._scope(frame)[1])), key=lambda pair: pair[0])[start : start + count]
            return {"items": [{"name": name, **self._described(item, MAX_PAGE_VALUE)} for name, item in local]}
        value = self._value_of(command["expression"], frame)
        columns = command.get("columns", 0)
        found = value_pages.columns(value, start, min(start + count, columns)) if start < columns else []
        items = [
            {"name": name, **self._described(item, MAX_PAGE_VALUE), "path": {"prefix": path[0], "suffix": path[1]}}
            for name, item, path in [*found, *value_pages.items(value, max(start - columns, 0), count - len(found))]
        ]
        return {"items": items, "length": value_pages.length(value) or 0}

    def _rows(self, frame, command: dict) -> dict:
        """Returns a sandbox.TablePage of the value of an expression, which is evaluated once for all pages."""
        asked = command["expression"], command["frame"]
        if not self._paged or self._paged[0] != asked:
            self._paged = asked, self._value_of(command["expression"], frame)
        try:
            return {"page": self._tables.answer(self._paged[1], command["rows"])}
        except table_rows.NoTable as error:
            return {"error": str(error)}

    def _forget_rows(self) -> None:
        self._paged = ()
        self._tables.forget()

    def _own_texts(self, frame, command: dict) -> dict:
        """Returns for each of some variables the text that its class makes, or "" if it makes none."""
        names, local = self._scope(frame)
        out = []
        for name in command["names"]:
            value = lookup.find(local, name, lookup.find(names, name))
            text = self._texts.preview(value, MAX_PAGE_VALUE)
            out.append(text if self._texts.used else "")
        return {"texts": out}

    def _set(self, frame, command: dict) -> dict:
        name = command["name"]
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"{name!r} is not the name of a variable")
        value = self._value_of(command["expression"].strip(), frame)
        names, local = self._scope(frame)
        if local is not names and not (
            name in local and self._recorder.assign(frame, name, value, frame is self._stopped_frame)
        ):
            raise ValueError("this variable can't be set: set one of the innermost frame or of the namespace")
        local[name] = value
        return self._described(value)

    def _complete(self, frame, command: dict) -> dict:
        names, local = self._scope(frame)
        text = command["text"]
        found = re.search(r"([A-Za-z_][\w.]*)?$", text)
        before, dot, start = (found[1] or "").rpartition(".") if found else ("", "", "")
        if dot:
            try:
                if not all(
                    isinstance(n, (ast.Attribute, ast.Name, ast.Load, ast.Expression))
                    for n in ast.walk(ast.parse(before, mode="eval"))
                ):
                    return {"names": []}
                known = dir(self._value_of(before, frame))
            except Exception:  # what is being typed has no value yet
                return {"names": []}
            owner = self._class_of(frame)
            prefix = debug_expressions.mangled("__x", owner)[:-1]
            known += [name[len(prefix) - 2 :] for name in known if owner and name.startswith(prefix)]
        else:
            known = [*local, *names, *vars(builtins), *keyword.kwlist]
        fits = sorted(
            {
                name
                for name in known
                if type(name) is str
                and len(name) <= MAX_LABEL
                and name.startswith(start)
                and (start[:1] == "_" or name[:1] != "_")
            }
        )
        return {"names": fits[:MAX_COMPLETIONS], "start": len(text) - len(start)}

    _COMMANDS = {
        "rows": _rows,
        "evaluate": _evaluate,
        "page": _page,
        "texts": _own_texts,
        "set": _set,
        "complete": _complete,
        "check": _check,
        "targets": _step_targets,
    }


def _is_within(frame, filename: str) -> bool:
    """Tells whether a generator expression is at the line of the statement that runs it. Such a step is not a new
    arrival at the line: otherwise its breakpoint would stop the program for each item."""
    if frame.f_code.co_name != "<genexpr>":
        return False
    back = frame.f_back
    while back is not None and back.f_code.co_filename != filename:
        back = back.f_back
    return back is not None and back.f_lineno == frame.f_lineno


def _token(held, depth: int):
    """Returns a value that changes when a recorded variable, or an object that it holds, changes."""
    if type(held) not in recorder_objects.ENTRY_TYPES:
        return (type(held).__name__, held)
    children = held.children if depth < recorder_objects.MAX_DEPTH else ()
    return held.serial, held.version, tuple(_token(child, depth + 1) for child in children)


def _earlier(error) -> list:
    """Returns the exceptions that led to one, the latest first: its causes, and those that were handled then."""
    found: list = []
    while len(found) < MAX_EARLIER:
        cause = _cause_of(error)
        error = cause if cause is not None or _suppresses(error) else _context_of(error)
        if error is None:
            break
        message = _message(error)[:MAX_VALUE]
        found.append({"type": values.name_of(type(error)), "message": message, "is_cause": cause is not None})
    return found


def _message(error) -> str:
    """Returns the text of an exception as Python shows it, or its arguments if that needed user code."""
    found = _args_of(error)
    try:
        own_text = next(base for base in _mro_of(type(error)) if "__str__" in dict(lookup.pairs(_vars_of(base))))
        if not _flags_of(own_text) & _HEAP_TYPE and all(type(each) in _SCALARS for each in found):
            text = _vars_of(own_text)["__str__"](error)
        elif len(found) == 1 and type(found[0]) is str:
            text = found[0]
        else:
            text = ", ".join(values.preview(each, MAX_VALUE) for each in found[:MAX_COMPLETIONS])
        return values.readable(text, MAX_MESSAGE)
    except Exception:  # such as an integer that is too long for a text
        return ""
