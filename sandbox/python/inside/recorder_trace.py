"""The recorder on sys.settrace, for Python 3.11."""

import sys
import threading

import recorder
import recorder_code
import recorder_format as form
import recorder_values
from recorder_format import n

_settrace, _gettrace = sys.settrace, sys.gettrace
_UNWIND, _RETURN, _SUSPEND = n(form.UNWIND), n(form.RETURN), n(form.SUSPEND)


class TraceRecorder(recorder.Recorder):
    kind = "settrace"
    fragile = True

    def _install(self) -> None:
        self._hook = self._call
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

    def _event(self, frame, event, arg):
        if self.over:
            return None
        try:
            with self._lock:
                known = self._frames.get(frame)
                if known is None or known.suspended:  # thrown into, or closed
                    known = self._enter(frame)
                if event == "line":
                    self._line(frame, known, frame.f_lineno)
                elif event == "exception":
                    self._exception(frame, known, *arg)
                elif event == "return":
                    self._return(frame, known, arg)
        except Exception as error:
            self._failed(error)
        if self._channel.interrupted:
            self._interrupt()
        return self._event

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

    class FastRecorder(recorder_fast.State, TraceRecorder):
        """Reads the frame's slots, so that every frame can be read; else as its base."""

        kind = "extension"

        def _install(self) -> None:
            self._few, self._every, self._flush_at = recorder.FEW, recorder.EVERY, 1
            self._set_heads, self._global_heads = self._heads[form.SET], self._heads[form.GLOBAL]
            self._out, self._unheld = self._writer.out, self._objects.unheld
            self._mark = self._tail.mark if self.control is None else 0  # 0: every line is Python's
            self.slots(recorder_code.Frame, recorder_code.Code, recorder_values.Entry, recorder_values.Reader)
            threading.settrace(self._begin)
            self.attach()

        def _begin(self, frame, event, arg):
            """The first event of a new thread."""
            self.attach()
            return self._call(frame, event, arg) and None

        def _uninstall(self) -> str:
            ours = self.attached()
            self._silence()
            return "" if ours else "the program has taken the recorder away"

        def _silence(self) -> None:
            self.detach()
            threading.settrace(None)

        def _code(self, code):
            known = super()._code(code)
            if known.unread:
                known.unread = ""
            return known

        def _read(self, frame, known) -> None:
            self._objects.next()
            if not self.read(frame, known):
                super()._read(frame, known)

    return FastRecorder
