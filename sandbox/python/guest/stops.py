"""Where a debugged program stops, and what is done in it while it stands.

The recorder asks at each line and each exception, under its lock: so while one thread
stands here, the others come no further than their next line. The host says what to
stop at, when the run begins and with each resume; to a program that runs it sends a
signal, and is asked at the next line. Hits count each time that a line is reached.

Expressions are the user's code, run in the process as it stands: they can change it.
"""

import ast
import builtins
import dis
import keyword
import re
import threading

import protocol
import recorder_values
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

FILE = "<execution expression>"  # begins as user code's do: an interrupt ends it
PREVIEW = 1000
MAX_PAGE = 500
IN_PAGE = 300
MAX_COMPLETIONS = 200

_compile, _eval, _exec = compile, eval, exec
_active = threading._active  # type: ignore[attr-defined]
_args_of, _traceback_of = (vars(BaseException)[name].__get__ for name in ("args", "__traceback__"))
_HITS = {
    "==": int.__eq__,
    ">=": int.__ge__,
    "<=": int.__le__,
    ">": int.__gt__,
    "<": int.__lt__,
    "%": lambda hits, n: n > 0 and hits % n == 0,
}


class Line:
    """A breakpoint: {"id", "line", "condition", "hits", "log"}."""

    def __init__(self, wish: dict, hits: int):
        self.id, self.line, self.log, self.hits = wish["id"], wish["line"], wish.get("log") or "", hits
        condition = (wish.get("condition") or "").strip()
        self.wrong, self.condition = "", None
        try:
            self.condition = _compile(condition, FILE, "eval") if condition else None
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.wrong = f"the condition is no expression: {type(error).__name__}"
        found = re.fullmatch(r"\s*(==|>=|<=|>|<|%)?\s*(\d+)\s*", wish.get("hits") or "")
        self.wanted = (_HITS[found[1] or "=="], int(found[2])) if found else None


class Stops:
    def __init__(self, recorder, channel, names: dict, wishes: dict):
        self._recorder = recorder
        self._channel = channel
        self._names = names
        self.lines: dict = {}
        self._data: list = []
        self._tokens: dict = {}
        self._current = None  # the frame that it stands in
        self._read: dict = {}  # the variables of frames, read since it stands
        self._raised = self._uncaught = False
        self._mode, self._lane = "entry" if wishes.get("entry") else "continue", 0
        self._frames: frozenset = frozenset()
        self._rooted = False  # the run's last expression, which has a frame of its own, is meant with its statements
        self.everywhere = True  # line is to be called at each line, and not only at those in lines
        self.set(wishes)

    def set(self, wishes: dict) -> None:
        before = {b.id: b.hits for each in self.lines.values() for b in each}
        self.lines = {}
        for wish in wishes.get("lines") or ():
            self.lines.setdefault(wish["line"], []).append(Line(wish, before.get(wish["id"], 0)))
        self._raised, self._uncaught = "raised" in (wishes.get("exceptions") or ()), "uncaught" in (wishes.get("exceptions") or ())
        self._data = [(d["id"], d["frame"], d["name"]) for d in wishes.get("data") or ()]
        self._look()
        self._tokens = {i: token for i, token in self._tokens.items() if any(i == d[0] for d in self._data)}

    def _look(self) -> None:
        """Says where line is to be called; besides, where a stop is asked for."""
        self.everywhere = bool(self._data or self._frames) or self._mode in ("entry", "stepIn")

    # -- deciding

    def line(self, frame, known, line: int) -> None:
        reason, ids, text = "", [], ""
        if self._data:
            ids = self._changed()
            reason = "data breakpoint" if ids else ""
        for b in self.lines.get(line, ()):
            said = self._hit(b, frame)
            if said is not None:
                ids.append(b.id)
                reason, text = "breakpoint", text or said
        if not reason and (
            self._mode == "entry"
            or known.number in self._frames
            or self._lane == known.lane
            and (self._mode == "stepIn" or self._rooted and not known.parent)
        ):
            reason = "entry" if self._mode == "entry" else "step"
        if not reason and self._channel.attention:
            reason = "attention"
        if reason:
            self._stand(frame, known, {"reason": reason, "ids": ids, "text": text})

    def raised(self, frame, known, error, trace=None) -> None:
        """An exception is in this frame; one that comes from a frame of the user's was told there."""
        filename = self._recorder._filename
        if issubclass(type(error), KeyboardInterrupt):  # a cancel's, or a limit's
            return
        trace = trace or _traceback_of(error)
        while trace is not None:
            if trace.tb_frame is not frame and trace.tb_frame.f_code.co_filename == filename:
                return
            trace = trace.tb_next
        if self._raised or self._uncaught and not _caught(frame, filename):
            text = values.name_of(type(error))
            self._stand(frame, known, {"reason": "exception", "ids": [], "text": text})

    def _hit(self, b: Line, frame) -> str | None:
        """Whether to stop, and what is to be said; a log point says it and goes on."""
        b.hits += 1
        if b.wrong:
            return b.wrong
        if b.wanted and not b.wanted[0](b.hits, b.wanted[1]):
            return None
        try:
            if b.condition is not None and not self._value(b.condition, frame):
                return None
        except Exception as error:
            return f"the condition failed: {values.name_of(type(error))}"
        if not b.log:
            return ""
        self._channel.send(protocol.LOG, {"text": re.sub(r"\{([^{}]+)\}", lambda m: self._shown(m[1], frame), b.log)[:10_000], "line": b.line})
        return None

    def _shown(self, text: str, frame) -> str:
        try:
            value = self._value(_compile(text.strip(), FILE, "eval"), frame)
            return value[:PREVIEW] if type(value) is str else values.preview(value, PREVIEW)
        except Exception as error:
            return f"<{values.name_of(type(error))}>"

    def _changed(self) -> list:
        ids, recorder = [], self._recorder
        for number, holder, name in self._data:
            if holder == 0:
                recorder._namespace((name,))
                seen = recorder._seen
            else:
                seen = next((k.seen for _, k in recorder._live() if k.number == holder), {})
            token = _token(seen.get(name), 0) if name in seen else None
            if self._tokens.setdefault(number, token) != token:
                self._tokens[number] = token
                ids.append(number)
        return ids

    # -- standing

    def _stand(self, frame, known, why: dict) -> None:
        """Waits for the host's resume, and does what it asks for until then."""
        channel, recorder = self._channel, self._recorder
        recorder._flush()
        why["step"] = recorder.count
        channel.attention = False
        self._current = frame
        with channel.turn:
            channel.send(protocol.STOP, why)
            while True:
                kind, body = channel.receive()
                if kind != protocol.COMMAND:
                    continue
                command = protocol.loads(body)
                if command.get("calm"):
                    channel.interrupted = False  # it was for an expression that was over just then
                if "stops" in command:
                    self.set(command["stops"])
                if command["do"] == "resume":
                    break
                channel.send(protocol.VALUE, self._answer(command))
        self._changed()  # from here on
        self._current = None
        self._read.clear()
        if "mode" not in command:
            return  # goes on with what it was about
        mode = self._mode = command["mode"]
        self._lane, self._frames, self._rooted = known.lane, frozenset(), False
        if mode in ("next", "stepOut"):
            by_number = {k.number: k for _, k in recorder._live()}
            each, stack = known if mode == "next" else by_number.get(known.parent), []
            while each is not None:
                if each.lane == known.lane:
                    stack.append(each.number)
                    self._rooted = not each.parent
                each = by_number.get(each.parent)
            self._frames = frozenset(stack)
        self._look()

    def _answer(self, command: dict) -> dict:
        try:
            number = command.get("frame", 0)
            frame = next((f for f, known in self._recorder._live() if known.number == number), None)
            if number and frame is None:
                return {"error": "this frame has ended"}
            return self._DO[command["do"]](self, frame, command)
        except KeyboardInterrupt:
            return {"error": "it took too long"}
        except BaseException as error:
            found = _args_of(error)
            message = found[0][:PREVIEW] if len(found) == 1 and type(found[0]) is str else ""
            name = values.name_of(type(error))
            return {"error": f"{name}: {message}" if message else name}

    def _scope(self, frame) -> tuple[dict, dict]:
        """The global and local names of a frame; locals of one that can't be read are left out."""
        if frame is None or frame.f_code.co_name == "<module>":
            return self._names, self._names
        if self._current is None:
            return frame.f_globals, self._recorder.variables(frame, len(_active) == 1)
        if frame not in self._read:  # once: reading them again would undo what was set
            self._read[frame] = self._recorder.variables(frame, True)
        return frame.f_globals, self._read[frame]

    def _value(self, code, frame):
        names, local = self._scope(frame)
        # Functions within an expression see what is global to it.
        return _eval(code, names) if local is names else _eval(code, {**names, **local})

    def _evaluate(self, frame, command: dict) -> dict:
        text = command["expression"].strip()
        try:
            code = _compile(text, FILE, "eval")
        except SyntaxError:
            if not command.get("statements"):
                raise
            names, local = self._scope(frame)
            before = dict(local)
            _exec(_compile(text, FILE, "exec"), names, local)
            for name, value in list(local.items()) if local is not names and self._recorder.copies else ():
                if before.get(name, self) is not value:
                    self._recorder.can_set(frame, name, value, frame is self._current)
            return {"value": "", "type": ""}
        return self._described(self._value(code, frame))

    def _described(self, value, limit: int = PREVIEW) -> dict:
        out: dict = {"value": values.preview(value, limit), "type": values.type_name(value)}
        size = _length(value)
        if size is not None:
            out["length"] = size
        return out

    def _page(self, frame, command: dict) -> dict:
        value = self._value(_compile(command["expression"], FILE, "eval"), frame)
        start, count = command["start"], min(command["count"], MAX_PAGE)
        items = [{"name": name, **self._described(item, IN_PAGE)} for name, item in _items(value, start, count)]
        return {"items": items, "length": _length(value) or 0}

    def _set(self, frame, command: dict) -> dict:
        name = command["name"]
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"{name!r} is not a variable's name")
        value = self._value(_compile(command["expression"].strip(), FILE, "eval"), frame)
        names, local = self._scope(frame)
        if local is not names and not (name in local and self._recorder.can_set(frame, name, value, frame is self._current)):
            raise ValueError("only variables of the innermost frame can be set here, and those of the namespace")
        local[name] = value
        return self._described(value)

    def _complete(self, frame, command: dict) -> dict:
        names, local = self._scope(frame)
        text = command["text"]
        found = re.search(r"([A-Za-z_][\w.]*)?$", text)
        before, dot, start = (found[1] or "").rpartition(".") if found else ("", "", "")
        if dot:
            if not all(isinstance(n, (ast.Attribute, ast.Name, ast.Load, ast.Expression)) for n in ast.walk(ast.parse(before, mode="eval"))):
                return {"names": []}
            known = dir(self._value(_compile(before, FILE, "eval"), frame))
        else:
            known = [*local, *names, *vars(builtins), *keyword.kwlist]
        fits = sorted({name for name in known if type(name) is str and name.startswith(start) and (start[:1] == "_" or name[:1] != "_")})
        return {"names": fits[:MAX_COMPLETIONS], "start": len(text) - len(start)}

    _DO = {"evaluate": _evaluate, "page": _page, "set": _set, "complete": _complete}


def _token(held, depth: int):
    """What changes when a recorded variable, or what it holds, does."""
    if type(held) not in recorder_values.ENTRIES:
        return (type(held).__name__, held)
    return held.serial, held.version, tuple(_token(child, depth + 1) for child in held.children) if depth < recorder_values.DEPTH else ()


def _caught(frame, filename: str) -> bool:
    """Whether a frame of the user's, from this one out, has a handler where it is now."""
    while frame is not None:
        code, at = frame.f_code, frame.f_lasti
        if code.co_filename == filename:
            for entry in dis._parse_exception_table(code):  # type: ignore[attr-defined]
                if entry.start <= at < entry.end and _handles(code, entry.target):
                    return True
        frame = frame.f_back
    return False


def _handles(code, target: int) -> bool:
    """Whether what begins there is an except clause, and no clean-up."""
    for op in dis.get_instructions(code):
        if op.offset < target:
            continue
        if op.opname in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT"):
            return True
        if op.opname in ("RERAISE", "WITH_EXCEPT_START"):
            return False
    return False


def _length(value) -> int | None:
    shape = values.shape(value)
    if shape is not None:
        return shape[0] if shape else None
    for kind in (list, tuple, dict, set, frozenset):
        if issubclass(type(value), kind):
            return kind.__len__(value)
    return None


_LISTS: tuple = (list, tuple)
_SETS: tuple = (set, frozenset)


def _items(value, start: int, count: int):
    """A page of what a container holds, as names and values; no code of the user's runs."""
    kind = type(value)
    for base in _LISTS:
        if issubclass(kind, base):
            return [(f"[{start + i}]", item) for i, item in enumerate(base.__getitem__(value, slice(start, start + count)))]
    if issubclass(kind, dict):
        pairs = zip(dict.keys(value), dict.values(value))
        return [(values.preview(key, 100), item) for i, (key, item) in enumerate(pairs) if start <= i < start + count]
    for base in _SETS:
        if issubclass(kind, base):
            return [(f"[{i}]", item) for i, item in enumerate(base.__iter__(value)) if start <= i < start + count]
    name = values.type_name(value)
    if name.endswith("DataFrame") and name.startswith("pandas"):
        rows = value.iloc[start : start + count, :50]
        return [(str(label), dict(zip(map(str, rows.columns), row))) for label, row in zip(rows.index, rows.itertuples(index=False, name=None))]
    if name.endswith(("Series", "ndarray")):
        part = value.iloc[start : start + count] if name.endswith("Series") else value[start : start + count]
        labels = list(part.index) if name.endswith("Series") else range(start, start + count)
        return [(str(label), item) for label, item in zip(labels, part.tolist())]
    held = getattr(value, "__dict__", None)
    return [(name, item) for i, (name, item) in enumerate(held.items()) if start <= i < start + count] if type(held) is dict else []
