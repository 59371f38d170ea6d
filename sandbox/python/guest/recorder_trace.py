"""The recorder on sys.settrace, for Python 3.11."""

import inspect
import sys
import threading

import recorder
import recorder_code
import recorder_format as form
import recorder_names
import recorder_values
from recorder_format import n

_settrace, _gettrace = sys.settrace, sys.gettrace
FORM = 2  # of what the extension and FastRecorder have of each other; recorder_fast.h has the same
_UNWIND, _RETURN, _SUSPEND = n(form.UNWIND), n(form.RETURN), n(form.SUSPEND)


class TraceRecorder(recorder.Recorder):
    kind = "settrace"
    fragile = True

    def _install(self) -> None:
        self._hook, self._event = self._call, self._events()
        threading.settrace(self._hook)
        _settrace(self._hook)

    def _uninstall(self) -> str:
        ours = _gettrace() is self._hook
        self._silence()
        return "" if ours else "the program has taken the recorder away"

    def _silence(self) -> None:
        _settrace(None)
        threading.settrace(None)

    def _call(self, frame, event, _arg):
        code = frame.f_code
        if code.co_filename != self._filename or code.co_name in recorder._INNER:
            return None
        if self.over:
            return None
        try:
            with self._lock:
                known = self._enter(frame)
                if self._near_limit(known):
                    return None
        except Exception as error:
            self._failed(error)
        if self._channel.interrupted:
            self._interrupt()
        return self._event

    def _events(self):
        """The hook of each frame's events. It is a function of its own: those of a recorder
        cost more to reach."""
        acquire, release, channel = self._lock.acquire, self._lock.release, self._channel
        known_of, line = self._frames.get, self._line

        def hook(frame, event, arg):
            if self.over:
                return None
            acquire()
            try:
                known = known_of(frame)
                if known is None or known.suspended:  # thrown into, or closed
                    known = self._enter(frame)
                if event == "line":
                    line(frame, known, frame.f_lineno)
                elif event == "exception":
                    self._exception(frame, known, *arg)
                elif event == "return":
                    self._return(frame, known, arg)
            except Exception as error:
                self._failed(error)
            finally:
                release()
            if channel.interrupted:
                self._interrupt()
            return hook

        return hook

    def _exception(self, frame, known, kind, error, trace) -> None:
        if kind is StopIteration or kind is StopAsyncIteration:  # a plain value may be in the place of it
            known.failure = self._writer.name(recorder_values.label(kind)) + b"N"
            return
        known.thrown, known.failure = True, self._failure(error)
        self._raise(frame, known, error, trace)

    def _return(self, frame, known, value) -> None:
        at = frame.f_lasti
        code = known.code
        if at in code.returns:
            self._leave(frame, known, _RETURN, value)
        elif at in code.yields and not known.thrown:
            self._leave(frame, known, _SUSPEND, value)
        else:
            failure = known.failure or self._writer.name("BaseException") + b"N"
            self._leave(frame, known, _UNWIND + failure, raised=True)


def fast() -> "type[TraceRecorder]":
    """The recorder with its line events in C; ImportError where that was not built."""
    import recorder_fast

    if getattr(recorder_fast, "FORM", 0) != FORM:
        raise ImportError("the extension was built for another version of this file")
    recorder_values.ENTRIES.add(recorder_fast.Entry)

    class FastRecorder(recorder_fast.State, TraceRecorder):
        """Reads the frame's slots, so that every frame can be read."""

        kind = "extension"
        copies = True
        fragile = False

        def start(self) -> None:
            self._lock = self
            self._few, self._every, self._format = recorder_names.FEW, recorder_names.EVERY, form
            self._set_heads, self._global_heads = self._heads[form.SET], self._heads[form.GLOBAL]
            self._task_step, self._out = recorder._TASK_STEP, self._writer.out
            self._wait, self._most_objects = self._ring.wait, self._objects.most
            self._open(self._ring.memory)
            super().start()

        def _install(self) -> None:
            threading.settrace(self._begin)
            self.attach()

        def _begin(self, frame, event, arg):
            """The first event of a new thread."""
            self.attach()

        def _uninstall(self) -> str:
            ours = self.attached()
            self._silence()
            return "" if ours else "the program has taken the recorder away"

        def _silence(self) -> None:
            self.detach()
            threading.settrace(None)

        def _close(self) -> None:
            recorder_fast.State._close(self)
            TraceRecorder._close(self)

        def _code(self, code):
            known = super()._code(code)
            if known.unread in (recorder_code.CLOSURE, recorder_code.LOCALS):
                known.unread = ""
            return known

        def variables(self, frame, alone) -> dict:
            return self._locals(frame)

        def can_set(self, frame, name, value, innermost) -> bool:
            return self._assign(frame, name, value) or not frame.f_code.co_flags & inspect.CO_OPTIMIZED

        # -- what the hooks leave to Python

        def _tell_unread(self, code) -> None:
            if code.unread:
                self._writer.out += n(form.UNREAD) + self._writer.name(code.unread)

        def _fail(self, known, kind=BaseException, error=None) -> None:
            known.failure = self._writer.name(recorder_values.label(kind)) + b"N" if error is None else self._failure(error)

        def _at_limit(self) -> None:
            self._end(recorder._LIMIT)

        def _budget(self) -> None:
            self._tail.step()

        def _stop_at(self, frame, known, line: int) -> None:
            self.control.line(frame, known, line)

        def _stop_raised(self, frame, known, raised) -> None:
            self.control.raised(frame, known, raised[1], raised[2])

    return FastRecorder
