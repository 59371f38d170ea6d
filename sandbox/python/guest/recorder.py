"""The recorder: everything that user code does, as records, from start to stop.

A namespace of many names is looked at in part: with each line of the module those
that it names, and all of them every EVERY lines. A change that comes by another way
(a callback of a library's, a thread) may be seen that much later.

It must not change the program. No code of the user's objects runs here; before Python
3.13 a frame that shares variables with a closure is left unread, since reading f_locals
writes old values back there, and so is one that could keep its own locals(); near
the recursion limit, where a hook in Python has no room, recording ends. Each of these
the recording says. What it can't hide: on 3.11, without the extension, an object that
loses its variable lives until the hook's next event, a line at the most; its small objects may bring a collection of
cycles forward, and sys.gettrace or sys.monitoring show it to those who ask.

One lock keeps the records of threads apart. A hook that fails ends the recording, and
says so, never the program. An interrupt never comes in the middle of a hook: the
channel holds it back, and the hook raises it when its records are whole.
"""

import abc
import asyncio
import builtins
import sys
import threading
import types
from typing import Any

import recorder_code
import recorder_format as form
import recorder_line
import recorder_names
import recorder_tail
import recorder_values
from recorder_code import Code, Frame
from recorder_format import n

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MARGIN = 48  # frames that a hook may need

_ident, _active, _getframe, _limit = threading.get_ident, threading._active, sys._getframe, sys.getrecursionlimit  # type: ignore[attr-defined]
_INNER = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}  # no frames of their own
_QUIET = {StopIteration, StopAsyncIteration, GeneratorExit}  # how iteration ends
_LIMIT = "near the recursion limit; what follows is not recorded"
_FULL = "too many objects at a time; what follows is not recorded"
_INTERRUPTED = "interrupted; what follows is not recorded"
_TASK_STEP = asyncio.events.Handle._run.__code__
_args_of = vars(BaseException)["args"].__get__


class Recorder(recorder_names.Names, abc.ABC):
    """Records code compiled under filename; hidden are the names of the helpers in names.
    channel.ring() takes the bytes. The hooks are in recorder_trace and recorder_monitor."""

    kind = "none"
    copies = False  # whether what variables gives is a copy
    fragile = False  # whether Python ends the events of a thread whose hook raises

    def __init__(self, channel, filename: str, names: dict, hidden):
        self._channel = channel
        self._ring = channel.ring()
        self._filename = filename
        self._names = names
        self._given = {name: names[name] for name in hidden if name in names}
        self._writer = form.Writer()
        self._objects = recorder_values.Objects(self._writer, names.get("__name__", "__main__"))
        self._objects.most = recorder_tail.MAX_OBJECTS
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._codes: dict = {}
        self._frames: dict = {}  # by frame
        self._lanes: dict = {}
        self._seen: dict = {}  # the namespace's variables
        self._watched: tuple = ()  # names of it that this code can set, or that can change
        self._whole = False  # all names can
        self._current = 0
        self._pushed = 0
        self._heads: dict = {form.SET: {}, form.GLOBAL: {}}  # the beginnings of set records, by name
        self._tail = recorder_tail.Tail(self)
        self._line = recorder_line.make(self, self._ring)
        self.mark = 0  # the step from which on the tail has something to do
        self.control: Any = None  # a stops.Stops, where the program may be stopped
        self.count = 0
        self.kept = False  # records are, and not handed over
        self.over = False

    def start(self) -> None:
        self._writer.head(self.kind, sys.version.split()[0])
        self._namespace(list(self._names))
        self._install()

    def stop(self) -> None:
        why = self._uninstall()
        with self._lock:
            if why and not self.over:
                self._end(why)
            elif not self.over:
                self._next()
                self._namespace(list(self._names))
            self.over = True
            self._abandon()
            self._tail.end()
            self._flush()
            self._close()

    def _end(self, why: str) -> None:
        """Recording is over ahead of the program."""
        self.over = True
        self._silence()
        self._writer.out += n(form.LOST) + n(0) + form.text(why)
        self._abandon()

    @abc.abstractmethod
    def _install(self) -> None:
        """Has the events of Python's hooks come."""

    @abc.abstractmethod
    def _uninstall(self) -> str:
        """Ends the events; returns why they were not complete, or ""."""

    @abc.abstractmethod
    def _silence(self) -> None:
        """Ends the events that can be ended."""

    def _flush(self) -> None:
        out = self._writer.out
        if out:
            self._ring.put(out)
            out.clear()

    def _close(self) -> None:
        self._ring.close()

    def _sent(self) -> int:
        """How many bytes were handed over."""
        return self._ring.sent()

    def _next(self) -> None:
        """Another event begins."""
        self._objects.next()

    def _live(self) -> list:
        """The frames that run or are suspended, each with what is known of it."""
        return list(self._frames.items())

    def _abandon(self) -> None:
        self._frames.clear()

    # -- for stops.Stops

    def variables(self, frame, alone: bool) -> dict:
        """A frame's variables: what can be read of them while no other thread runs (alone), or any does."""
        return frame.f_locals if alone or not recorder_code.unreadable(frame.f_code) else {}

    def can_set(self, frame, name: str, value, innermost: bool) -> bool:
        """Whether a variable that is set in what variables gave is set in the frame."""
        return recorder_code.PROXY or innermost and recorder_code.WRITTEN_BACK

    # -- what happens, each under the lock

    def _enter(self, frame) -> Frame:
        known = self._frames.get(frame)
        if known is None:
            return self._push(frame)
        if known.suspended:
            known.suspended = False
            parent = self._caller(frame, known.code)
            known.parent = parent.number if parent is not None else 0
            self._writer.out += n(form.RESUME) + n(known.number) + n(known.parent)
            self._current = known.number
        return known

    def _push(self, frame) -> Frame:
        self._objects.settle()  # ahead of new objects in old places
        code = self._code(frame.f_code)
        known = Frame()
        parent = self._caller(frame, code)
        self._pushed += 1
        known.number, known.code, known.line, known.seen = self._pushed, code, code.first, {}
        known.suspended = known.raised = known.thrown = False
        known.failure = b""
        known.depth = parent.depth + 1 if parent is not None else 1
        if parent is not None:
            known.parent, known.lane = parent.number, parent.lane
        else:
            known.parent, known.lane = 0, self._lane(frame, code)
        self._frames[frame] = known
        out = self._writer.out
        out += n(form.PUSH) + n(known.number if self.kept else 0) + code.number + n(known.lane) + n(known.parent) + b"\0"
        self._current = known.number
        if code.unread:
            out += n(form.UNREAD) + self._writer.name(code.unread)
        return known

    def _caller(self, frame, code: Code) -> Frame | None:
        """The user's frame that this one was called from. A task has none: the event
        loop runs it, whoever runs the loop."""
        back = frame.f_back
        frames = self._frames
        while back is not None:
            if code.task and back.f_code is _TASK_STEP:
                return None
            known = frames.get(back)
            if known is not None:
                return known
            back = back.f_back
        return None

    def _lane(self, frame, code: Code) -> int:
        ident = _ident()
        key = ident, id(_active.get(ident))
        lane = self._lanes.get(key)
        if lane is None:
            first = not self._lanes
            lane = self._lanes[key] = self._writer.lane(False, 0, "main" if first else f"thread {len(self._lanes) + 1}")
        back = frame.f_back
        if code.task and back is not None and back.f_code is _TASK_STEP:
            return self._writer.lane(True, lane, frame.f_code.co_name[: form.MAX_NAME])
        return lane

    def _code(self, code) -> Code:
        known = self._codes.get(id(code))
        if known is None:
            name = code.co_name if code.co_name == "<module>" else code.co_qualname
            number = self._writer.code(code.co_filename, name, code.co_firstlineno)
            known = Code(code, number, self._names)
            self._codes[id(code)] = known, code
            if known.module:
                self._watch(code)
        else:
            known = known[0]
        return known

    def _watch(self, code) -> None:
        """Which of the namespace's names this code can change: those that it or a function in it
        sets, here or left by an earlier run, and those whose objects change."""
        codes = [code]
        for value in list(self._names.values()):
            if type(value) is types.FunctionType and value.__globals__ is self._names:
                codes.append(value.__code__)
        found, anything = recorder_code.sets(codes)
        stores = found.union(self._watched)
        self._whole = self._whole or anything
        for name, seen in self._seen.items():
            if type(seen) in recorder_values.ENTRIES and seen.reader.peek is not None:
                stores.add(name)
        self._watched = tuple(sorted(stores))

    def _at(self, known: Frame) -> bytearray:
        """Where the frame's records go; said first, where the ones before were another's."""
        out = self._writer.out
        if self._current != known.number:
            self._current = known.number
            out += n(form.FRAME) + n(known.number)
        return out

    def _put_back(self, known: Frame) -> None:
        """The frame goes on: after another, or after an exception that it has caught."""
        self._at(known)
        known.thrown = False
        if known.raised:
            known.raised = False
            self._writer.out += n(form.HANDLED)

    def _leave(self, frame, known: Frame, record: bytes, value=None, raised: bool = False) -> None:
        self._at(known)
        if not raised:
            self._read(frame, known)
        entry = None
        if not raised:
            data, entry = self._objects.value(value)
            record += data
        self._writer.out += record
        if record[0] == form.SUSPEND:
            known.suspended, self._current, known.parent = True, known.parent, 0
        else:
            self._frames.pop(frame, None)
            self._current = known.parent
            self._forget(known.seen)
        if entry is not None:
            self._objects.idle(entry)

    def _forget(self, seen: dict) -> None:
        for old in seen.values():
            if type(old) is recorder_values.Entry:
                self._objects.drop(old)

    def _raise(self, frame, known: Frame, error, trace=None) -> None:
        kind = type(error)
        if type(kind) is type and kind in _QUIET:
            return
        self._at(known)
        self._read(frame, known)
        self._at(known)
        self._writer.out += n(form.RAISE) + self._failure(error)
        known.raised = known.thrown = True
        if self.control is not None:
            self.control.raised(frame, known, error, trace)

    def _handled(self, known: Frame) -> None:
        if known.raised:
            known.raised = False
            self._at(known)
            self._writer.out += n(form.HANDLED)

    def _failure(self, error) -> bytes:
        """The exception's class, and its message where it is one scalar."""
        args = _args_of(error)
        data = form.scalar(args[0]) if len(args) == 1 else None
        return self._writer.name(recorder_values.label(type(error))) + (data or b"N")

    def _failed(self, error: Exception) -> None:
        """What a hook of ours has raised never reaches the program."""
        if not self.over:
            known = {RecursionError: _LIMIT, recorder_values.Full: _FULL}
            self._end(known.get(type(error)) or f"the recorder failed with a {type(error).__name__}")

    def _interrupt(self) -> None:
        """Raises an interrupt that came while a hook ran, in the program's main thread."""
        if self._channel.take_interrupt():
            if not self.over and self.fragile:
                with self._lock:
                    self._end(_INTERRUPTED)
                    self._flush()
            raise KeyboardInterrupt

    # -- the recursion limit

    def _near_limit(self, known: Frame) -> bool:
        """Whether a hook could soon have no room. C calls count too, so it is tried."""
        if known.depth * 5 < _limit():
            return False
        if recorder_code.has_room(MARGIN):
            return False
        self._end(_LIMIT)
        return True
