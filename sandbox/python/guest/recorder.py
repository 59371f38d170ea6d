"""The recorder writes the steps of user code as records, from start to stop.

In a namespace with many names it compares only some: at each line of the module the names that the line uses, and all
names every FULL_READ_INTERVAL lines. A further turn of a loop does not use the names in its iterable. Tables are
compared likewise, however few names there are. A change by other code (a callback of a library, a thread) may be
recorded that much later.

The recorder must not change the program, so it runs no code of the user's objects. It leaves out variables that it
can't read without a change, and records that it does:

- Before Python 3.13 reading f_locals writes old values back to variables that a closure shares, so such a frame is not
  read, and neither is a frame that could keep its own locals().
- Near the recursion limit a hook in Python has no stack space, so recording pauses until the stack is shorter. The hook
  in C always has space.

A program can notice some effects. While Python 3.11 traces lines, an operation such as a comparison can count as a call
near the recursion limit, so the limit may be reached one call earlier with the extension. On 3.11 without the
extension, an object that loses its variable lives until the next event of the hook, which is at most one line later. A
recorder in Python may compare a name whose class is derived from str, which calls its __eq__, until the next line of
the code that makes such names. The small objects of the recorder may start a collection of cycles earlier, and
sys.gettrace and sys.monitoring show the recorder.

A lock separates the records of threads. If a hook fails, or the program takes the hooks away, recording ends with a
record that says why, and the program continues. An interrupt never comes in the middle of a hook: the channel delays
it, and the hook raises it when its records are complete.
"""

import abc
import asyncio
import builtins
import contextlib
import sys
import threading
import types
from typing import Any

import lookup
import recorder_budget
import recorder_code
import recorder_format as form
import recorder_guard
import recorder_line
import recorder_objects
import recorder_variables
import values
from recorder_code import Code, Frame
from recorder_format import varint

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MARGIN = 48  # calls that a hook may need
PAUSE_CALLS = 64  # calls by which the stack is shorter when recording goes on after a pause
EDIT = "edit"  # the kind of the events around the changes that a person made
MAX_PAUSES = 50  # a pause costs as much as the stack is long

_ident, _active, _getframe = threading.get_ident, threading._active, sys._getframe  # type: ignore[attr-defined]
_recursion_limit = sys.getrecursionlimit
_ENDS_OF_ITERATION = {StopIteration, StopAsyncIteration, GeneratorExit}
_LIMIT = "near the recursion limit; steps are not recorded until the stack is shorter"
_LIMIT_OFTEN = "near the recursion limit too often; later steps are not recorded"
_CALLED = "the program called {}; {} are not recorded"
LATER_STEPS, LATER_THREADS = "later steps", "threads that begin later"
THREAD_STEPS = "later steps of this thread"
_FULL = "too many objects at a time; later steps are not recorded"
_INTERRUPTED = "interrupted; later steps are not recorded"
_TASK_STEP = asyncio.events.Handle._run.__code__
_args_of = vars(BaseException)["args"].__get__


class Recorder(recorder_variables.Variables, abc.ABC):
    """Records code compiled under filename. hidden has the names of the helpers in names, which are not recorded.

    The records go to the ring of channel.open_ring(). The hooks are in recorder_settrace and recorder_monitoring.
    """

    kind = "none"
    locals_are_copies = False  # whether a change of the dict that variables() returns leaves the frame unchanged
    raising_ends_events = False  # whether Python ends the events of a thread whose hook raises

    def __init__(self, channel, filename: str, names: dict, hidden):
        self._channel = channel
        self._ring = channel.open_ring()
        self._filename = filename
        self._names = names
        self._helpers = {name: value for name, value in lookup.pairs(names) if name in hidden}
        self._writer = form.Writer()
        self._has_odd_names = False  # the namespace has keys that are not exactly str
        module = lookup.find(names, "__name__")
        self._objects = recorder_objects.Objects(self._writer, module if type(module) is str else "__main__")
        self._objects.max_objects = recorder_budget.MAX_OBJECTS
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._codes: dict = {}
        self._frames: dict = {}  # by frame
        self._threads: dict = {}
        self._recorded: dict = {}  # variables of the namespace as they were recorded last
        self._watched: tuple = ()  # names of the namespace that the code can set, or whose objects can change
        self._watch_all = False  # the code can set any name
        self._current_frame = 0
        self._frames_pushed = 0
        self._prefixes: dict = {form.SET: {}, form.GLOBAL: {}}  # the first bytes of set records, by name
        self._budget = recorder_budget.Budget(self)
        self._record_line = recorder_line.line_hook(self, self._ring)
        self.budget_step = 0  # the budget is applied from this step on
        self.control: Any = None  # a debug_control.DebugControl if the program may be stopped
        self.stop_lines: dict | None = {}  # the lines at which control.line is called; None: at each
        self.statements: list = []  # texts of recorder_source.describe, which are recorded first
        self.steps = 0
        self.tail_only = False  # records are held for the end, because the budget is used up
        self.ended = False  # no events are recorded now
        self._guard = recorder_guard.Guard()
        self._pause: _Pause | None = None  # near the recursion limit
        self._pauses = 0

    def start(self) -> None:
        self._main_thread = _ident()
        self._writer.head(self.kind, sys.version.split()[0])
        for each in self.statements:
            self._writer.statement(each)
        self._read_all_names()
        self._install()
        if self.control is not None:
            self._guard.replace(threading, "excepthook", self._on_thread_exception)

    def _on_thread_exception(self, original, args) -> None:
        """An exception ends a thread, which calls this in place of threading.excepthook."""
        if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):  # which ends it silently
            self.control.uncaught(args.exc_value)
        original(args)

    def stop(self) -> None:
        self._guard.restore()
        self._pause = None
        why = self._uninstall()
        with self._lock:
            if why and not self.ended:
                self._end(why)
            elif not self.ended:
                self._begin_event()
                self._read_all_names()
            self.ended = True
            self._forget_frames()
            self._budget.end()
            self._flush_all()
            self._close()

    def _end(self, why: str) -> None:
        """Ends recording before the program ends."""
        self.ended = True
        self._silence()
        self._budget.end()
        if why != recorder_budget.TOO_LARGE:  # the budget has recorded that
            self._writer.out += varint(form.LOST) + varint(0) + form.text(why)
        self._forget_frames()
        try:
            self._flush_all()
        except (BufferError, OSError):
            pass  # the supervisor is gone

    def _end_by_call(self, function: str) -> None:
        """Ends recording because the program calls a function that ends the events."""
        if not self.ended:
            with self._lock_for_call():
                self._end(_CALLED.format(function, LATER_STEPS))

    def _lose_by_call(self, function: str, lost: str) -> None:
        """Records that the program calls a function after which some steps are not recorded. Recording goes on."""
        if not self.ended:
            self._lose(_CALLED.format(function, lost))

    def _lose(self, why: str) -> None:
        """Records that some steps are not recorded from here on. Recording goes on."""
        with self._lock_for_call():
            state = self._budget.state()
            self._writer.out += varint(form.LOST) + varint(0) + form.text(why) + state

    def _lock_for_call(self):
        """Returns the lock, or a stand-in if this thread has it because the debugger evaluates an expression."""
        stopped = self.control is not None and self.control.stopped_thread == _ident()
        return contextlib.nullcontext() if stopped else self._lock

    @abc.abstractmethod
    def _install(self) -> None:
        """Installs the hooks."""

    @abc.abstractmethod
    def _uninstall(self) -> str:
        """Removes the hooks. Returns why events are missing, or ""."""

    @abc.abstractmethod
    def _silence(self) -> None:
        """Ends the events that can be ended."""

    @abc.abstractmethod
    def _reopen(self) -> None:
        """Begins the events again that _silence has ended."""

    def _flush(self) -> None:
        out = self._writer.out
        if out:
            self._ring.put(out)
            out.clear()

    def _flush_all(self) -> None:
        """Hands over all records, after those that were held."""
        self._flush()
        self._ring.tell_held(0)

    def send_all(self) -> bool:
        """Hands over all records up to here, for a stop of the program. Returns False if the recording has ended."""
        if not self.ended and not self._budget.release():
            self._end(recorder_budget.TOO_LARGE)
        if not self.ended:
            self._flush_all()
        return not self.ended

    def _close(self) -> None:
        self._ring.close()

    def _bytes_sent(self) -> int:
        return self._ring.bytes_sent()

    def _begin_event(self) -> None:
        self._objects.event += 1

    def _live_frames(self) -> list:
        """Returns the frames that run or are suspended, each with its Frame."""
        return list(self._frames.items())

    def _forget_frames(self) -> None:
        self._frames.clear()

    def _forget_objects_except(self, numbers: set) -> None:
        """Records that objects other than these are free."""
        self._objects.forget_except(numbers)

    # -- for debug_control.DebugControl

    def variables(self, frame, alone: bool) -> dict:
        """Returns the readable variables of a frame. alone says that no other thread runs; then all are readable."""
        return frame.f_locals if alone or not recorder_code.unreadable(frame.f_code) else {}

    def assign(self, frame, name: str, value, innermost: bool) -> bool:
        """Sets a variable of a frame, or returns False. The dict of variables() has the value already."""
        return recorder_code.PROXY or innermost and recorder_code.WRITTEN_BACK

    def record_edit(self, frame, local: dict, number: int) -> None:
        """Records the changes that a command of the debugger has made, between two event records. local has the
        variables of frame, the frame of the command, which may be None."""
        if self.ended:
            return
        try:
            self._record_edit(frame, local, number)
        except Exception as error:
            self._hook_failed(error)

    def _record_edit(self, frame, local: dict, number: int) -> None:
        known = next((known for each, known in self._live_frames() if each is frame), None)
        event, current = varint(form.EVENT) + self._writer.name(EDIT), self._current_frame
        self._writer.out += event + varint(number)
        self._objects.forget_unheld()  # before new objects take the addresses of these
        self._begin_event()
        self._read_all_names()
        if known is not None and local is not self._names and not known.code.unread:
            self._switch_to_frame(known.number)
            self._read_edited(frame, known, local)
            self._switch_to_frame(current)
        self._writer.out += event + varint(0)
        self.send_all()

    def _read_edited(self, frame, known: Frame, local: dict) -> None:
        """Records the changes of a frame's own variables. Reading them from the frame again could undo a change."""
        recorded = known.recorded
        for name, value in lookup.pairs(dict(local)):
            old = recorded.get(name, known)  # known is the value of no variable
            if old is not value:
                self._record_variable(form.SET, recorded, name, old, value)

    # -- events, each under the lock

    def _enter(self, frame) -> Frame:
        known = self._frames.get(frame)
        if known is None:
            return self._push(frame)
        if known.suspended:
            known.suspended = False
            parent = self._caller(frame, known.code)
            if parent is not None:
                self._read_caller(frame, parent)
            known.parent = parent.number if parent is not None else 0
            self._writer.out += varint(form.RESUME) + varint(known.number) + varint(known.parent)
            self._current_frame = known.number
        return known

    def _push(self, frame, number: int = 0) -> Frame:
        """Records that a call begins; with a number, that the frame with this number is at its present line."""
        self._objects.forget_unheld()  # before new objects take the addresses of these
        code = self._code_of(frame.f_code)
        known = Frame()
        parent = self._caller(frame, code)
        if parent is not None and not number:
            self._read_caller(frame, parent)
        self._frames_pushed += not number
        known.number, known.code, known.line = number or self._frames_pushed, code, code.first_line
        known.recorded, known.failure = {}, b""
        known.suspended = known.raised = known.thrown = known.has_steps = False
        known.turn = -1
        known.depth = parent.depth + 1 if parent is not None else 1
        if parent is not None:
            known.parent, known.thread = parent.number, parent.thread
        else:
            known.parent, known.thread = 0, self._thread_of(frame, code)
        self._frames[frame] = known
        out = self._writer.out
        out += varint(form.PUSH) + varint(known.number if self.tail_only or number else 0) + code.number
        out += varint(known.thread) + varint(known.parent) + varint(form.RESTATED if number else 0)
        if number:
            known.line = frame.f_lineno
            out += varint(known.line)
        self._current_frame = known.number
        if code.unread:
            out += varint(form.UNREAD) + self._writer.name(code.unread)
        return known

    def _caller(self, frame, code: Code) -> Frame | None:
        """Returns the user's frame that called this one. A task has no such frame, because the event loop runs it."""
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

    def _read_caller(self, frame, parent: Frame) -> None:
        """Records what the caller's line has set before the call."""
        if parent.line not in parent.code.sets_before_calls:
            return
        back = frame.f_back
        while self._frames.get(back) is not parent:
            back = back.f_back
        self._switch_to(parent)
        self._read_variables(back, parent)

    def _thread_of(self, frame, code: Code) -> int:
        """Returns the number of the thread or task that a frame without a caller runs in."""
        ident = _ident()
        key = ident, id(_active.get(ident))
        thread = self._threads.get(key)
        if thread is None:
            name = _thread_name(_active.get(ident)) or f"thread {len(self._threads) + 1}"
            thread = self._threads[key] = self._writer.thread(False, 0, name)
        back = frame.f_back
        if code.task and back is not None and back.f_code is _TASK_STEP:
            return self._writer.thread(True, thread, str.__str__(frame.f_code.co_name)[: form.MAX_NAME])
        return thread

    def _code_of(self, code) -> Code:
        known = self._codes.get(id(code))
        if known is None:
            name = str.__str__(code.co_name)
            name = name if name == "<module>" else str.__str__(code.co_qualname)
            number = self._writer.code(str.__str__(code.co_filename), name, code.co_firstlineno)
            known = Code(code, number, self._plain_names())
            self._codes[id(code)] = known, code
            if known.module:
                self._watch(code)
        else:
            known = known[0]
        return known

    def _watch(self, code) -> None:
        """Finds the names of the namespace that code can change.

        Code can change a name if it, a function in it, or a function of an earlier run sets the name, or if the name's
        object can change.
        """
        codes = [code]
        for value in list(self._names.values()):
            if type(value) is types.FunctionType and value.__globals__ is self._names:
                codes.append(value.__code__)
        found, anything = recorder_code.stored_names(codes)
        stores = found.union(self._watched)
        self._watch_all = self._watch_all or anything
        for name, recorded in self._recorded.items():
            if type(recorded) in recorder_objects.ENTRY_TYPES and recorded.reader.peek is not None:
                stores.add(name)
        self._watched = tuple(sorted(stores))

    def _switch_to(self, known: Frame) -> None:
        """Records that the next records belong to this frame, unless it is the current frame already."""
        self._switch_to_frame(known.number)

    def _switch_to_frame(self, number: int) -> None:
        if self._current_frame != number:
            self._current_frame = number
            self._writer.out += varint(form.FRAME) + varint(number)

    def _continue_frame(self, known: Frame) -> None:
        """Records that a frame continues after another frame, or after an exception that it has caught."""
        self._switch_to(known)
        known.thrown = False
        self._handled(known)

    def _leave(self, frame, known: Frame, record: bytes, value=None, raised: bool = False) -> None:
        self._switch_to(known)
        entry = None
        if not raised or not known.raised:  # the record of an exception comes after the changes of its line
            self._read_variables(frame, known)
            self._switch_to(known)
        if not raised:
            data, entry = self._objects.value(value)
            record += data
        self._writer.out += record
        if record[0] == form.SUSPEND:
            known.suspended, self._current_frame, known.parent = True, known.parent, 0
        else:
            self._frames.pop(frame, None)
            self._current_frame = known.parent
            for old in known.recorded.values():
                if type(old) is recorder_objects.Entry:
                    self._objects.drop_holder(old)
        if entry is not None:
            self._objects.queue_unheld(entry)

    def _raise(self, frame, known: Frame, error, trace=None) -> None:
        kind = type(error)
        if type(kind) is type and kind in _ENDS_OF_ITERATION:
            return
        self._switch_to(known)
        self._read_variables(frame, known)
        self._switch_to(known)
        self._writer.out += varint(form.RAISE) + self._failure(error)
        known.raised = known.thrown = True
        if self.control is not None:
            self.control.raised(frame, known, error, trace)

    def _handled(self, known: Frame) -> None:
        if known.raised:
            known.raised = False
            self._switch_to(known)
            self._writer.out += varint(form.HANDLED)

    def _failure(self, error) -> bytes:
        """Encodes the class of an exception, and its message if the message is one scalar."""
        args = _args_of(error)
        data = form.scalar(args[0]) if len(args) == 1 else None
        return self._writer.name(recorder_objects.label(type(error))) + (data or b"N")

    def _hook_failed(self, error: Exception) -> None:
        """Ends recording after an exception in a hook, which never reaches the program."""
        if not self.ended:
            known = {RecursionError: _LIMIT, recorder_objects.Full: _FULL}
            self._end(known.get(type(error)) or f"the recorder failed with a {type(error).__name__}")

    def _raise_interrupt(self) -> None:
        """Raises an interrupt that came while a hook ran, in the main thread of the program."""
        if self._channel.take_interrupt():
            if not self.ended and self.raising_ends_events:
                with self._lock:
                    self._end(_INTERRUPTED)
            raise KeyboardInterrupt

    def _near_limit(self, frame, known: Frame) -> bool:
        """Pauses recording if a hook may soon run out of stack. It makes calls to test that, because C calls count
        too."""
        if known.depth * 5 < _recursion_limit() or recorder_code.has_space(MARGIN):
            return False
        numbers = {id(each): (each.f_code, of.number) for each, of in self._live_frames()}
        self._pauses += 1
        self._end(_LIMIT if self._pauses <= MAX_PAUSES else _LIMIT_OFTEN)
        if self._pauses <= MAX_PAUSES:
            self._pause = _Pause(numbers, _ident())
            for _ in range(PAUSE_CALLS):
                if frame.f_back is None or frame.f_back.f_code.co_name == "<module>":
                    break
                frame = frame.f_back
            frame.f_trace = _EndOfFrame(self, self._pause)
        return True

    def _resume(self, pause: "_Pause") -> None:
        """Ends a pause, if it is the present one and this is its thread."""
        if self._pause is not pause or _ident() != pause.thread:
            return
        try:
            with self._lock:
                self._pause, self.ended = None, False
                self._restate(pause.numbers, _getframe(1))
            self._reopen()
        except Exception as error:
            self._hook_failed(error)

    def _restate(self, numbers: dict, frame) -> None:
        """Records the state of the program after a pause: its variables, and the frames that still run here."""
        self._objects.reset()
        self._recorded.clear()
        self._current_frame = 0
        self._begin_event()
        self._read_all_names()
        if self.control is not None:
            self.control.forget_objects()
        stack = []
        while frame is not None:
            code, number = numbers.get(id(frame), (None, 0))
            if code is frame.f_code:
                stack.append((frame, number))
            frame = frame.f_back
        for frame, number in reversed(stack):
            self._read_variables(frame, self._push(frame, number))


def _thread_name(thread) -> str:
    """Returns the name that the program gives to a thread, or "". It runs no property of that name."""
    name = lookup.find(lookup.own_attributes(thread), "_name")
    return values.readable(name, form.MAX_NAME) if type(name) is str else ""


class _Pause:
    """A time in which nothing is recorded. numbers has (code, number) of the frames before it, by their ids."""

    def __init__(self, numbers: dict, thread: int):
        self.numbers, self.thread = numbers, thread


class _EndOfFrame:
    """Ends a pause when it dies. It is the f_trace of a frame without events, so it dies with the frame."""

    def __init__(self, recorder: Recorder, pause: _Pause):
        self._recorder, self._pause = recorder, pause

    def __del__(self):
        self._recorder._resume(self._pause)
