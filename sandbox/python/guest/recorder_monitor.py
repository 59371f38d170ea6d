"""The recorder on sys.monitoring, for Python 3.12 and later. Events of other code
are switched off where they come from, or cost a comparison."""

import sys
from typing import Any

import recorder
import recorder_format as form
from recorder_format import n

_monitoring: Any = getattr(sys, "monitoring", None)
_getframe = sys._getframe
_TOOL = "glasshouse"
_UNWIND, _RETURN, _SUSPEND = n(form.UNWIND), n(form.RETURN), n(form.SUSPEND)


class MonitorRecorder(recorder.Recorder):
    kind = "monitoring"

    def _install(self) -> None:
        m = _monitoring
        e = m.events
        self._tool = m.DEBUGGER_ID
        m.use_tool_id(self._tool, _TOOL)
        for event, hook in (
            (e.PY_START, self._start),
            (e.PY_RESUME, self._resume),
            (e.PY_THROW, self._throw),
            (e.PY_RETURN, self._return),
            (e.PY_YIELD, self._yield),
            (e.PY_UNWIND, self._unwind),
            (e.LINE, self._at_line),
            (e.RAISE, self._raised),
            (e.EXCEPTION_HANDLED, self._caught),
        ):
            m.register_callback(self._tool, event, hook)
        self._local = e.LINE | e.PY_RETURN | e.PY_YIELD | e.PY_RESUME
        m.set_events(self._tool, e.PY_START | e.PY_THROW | e.PY_UNWIND | e.RAISE | e.EXCEPTION_HANDLED)

    def _uninstall(self) -> str:
        m = _monitoring
        if m.get_tool(self._tool) != _TOOL:
            return "the program has taken the recorder away"
        self._silence()
        for event in ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND", "LINE", "RAISE", "EXCEPTION_HANDLED"):
            m.register_callback(self._tool, getattr(m.events, event), None)
        m.free_tool_id(self._tool)
        return ""

    def _silence(self) -> None:
        if _monitoring.get_tool(self._tool) != _TOOL:
            return
        _monitoring.set_events(self._tool, 0)
        for _, code in self._codes.values():
            _monitoring.set_local_events(self._tool, code, 0)

    def _foreign(self, code) -> bool:
        return code.co_filename != self._filename or code.co_name in recorder._INNER or self.over

    def _start(self, code, _offset):
        if code.co_filename != self._filename or code.co_name in recorder._INNER:
            return _monitoring.DISABLE
        if self.over:
            return None
        try:
            with self._lock:
                new = id(code) not in self._codes
                known = self._enter(_getframe(1))
                if new:
                    _monitoring.set_local_events(self._tool, code, self._local)
                self._near_limit(known)
        except Exception as error:
            self._failed(error)
        if self._channel.interrupted:
            self._interrupt()
        return None

    def _resume(self, code, _offset):
        if not self._foreign(code):
            self._do(_getframe(1), self._nothing)

    def _throw(self, code, _offset, _error):
        if not self._foreign(code):
            self._do(_getframe(1), self._nothing)

    def _return(self, code, _offset, value):
        if not self._foreign(code):
            self._do(_getframe(1), self._leave, _RETURN, value)

    def _yield(self, code, _offset, value):
        if not self._foreign(code):
            self._do(_getframe(1), self._leave, _SUSPEND, value)

    def _unwind(self, code, _offset, error):
        if not self._foreign(code):
            self._do(_getframe(1), self._unwound, error)

    def _at_line(self, code, line):
        if not self._foreign(code):
            self._do(_getframe(1), self._line, line)

    def _raised(self, code, _offset, error):
        if not self._foreign(code):
            self._do(_getframe(1), self._raise, error)

    def _caught(self, code, _offset, _error):
        if not self._foreign(code):
            self._do(_getframe(1), self._catch)

    def _do(self, frame, what, *args) -> None:
        self._acquire()
        try:
            known = self._frames.get(frame)
            if known is None or known.suspended:
                known = self._enter(frame)
            what(frame, known, *args)
        except Exception as error:
            self._failed(error)
        finally:
            self._release()
        if self._channel.interrupted:
            self._interrupt()

    def _nothing(self, _frame, _known) -> None:
        pass

    def _catch(self, _frame, known) -> None:
        self._handled(known)

    def _unwound(self, frame, known, error) -> None:
        self._leave(frame, known, _UNWIND + self._failure(error), raised=True)
