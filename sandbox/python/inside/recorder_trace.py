"""The recorder on sys.settrace, for Python 3.11."""

import sys
import threading

import recorder
import recorder_format as form
import recorder_values
from recorder_format import n

_settrace, _gettrace = sys.settrace, sys.gettrace
_UNWIND, _RETURN, _SUSPEND = n(form.UNWIND), n(form.RETURN), n(form.SUSPEND)


class TraceRecorder(recorder.Recorder):
    kind = "settrace"

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
        threading.settrace(None)  # type: ignore[arg-type]

    def _call(self, frame, event, _arg):
        code = frame.f_code
        if code.co_filename != self._filename or code.co_name in recorder._INNER:
            return None
        if self.over:
            return None
        try:
            with self._lock:
                known = self._enter(frame, True)
                if self._near_limit(known):
                    return None
        except Exception as error:
            self._failed(error)
        return self._event

    def _event(self, frame, event, arg):
        if self.over:
            return None
        try:
            with self._lock:
                known = self._frames.get(frame)
                if known is None or known.suspended:  # thrown into, or closed
                    known = self._enter(frame, True)
                if event == "line":
                    self._line(frame, known, frame.f_lineno)
                elif event == "exception":
                    self._exception(frame, known, arg[0], arg[1])
                elif event == "return":
                    self._return(frame, known, arg)
        except Exception as error:
            self._failed(error)
        return self._event

    def _exception(self, frame, known, kind, error) -> None:
        if kind is StopIteration or kind is StopAsyncIteration:  # a plain value may be in the place of it
            known.failure = self._writer.name(recorder_values.label(kind)) + b"N"
            return
        known.thrown, known.failure = True, self._failure(error)
        self._raise(frame, known, error)

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
