"""The recorder on sys.monitoring, for Python 3.12 and later, and its variant with the C extension recorder_fast.

Events of other code are disabled at their location, or cost one comparison.
"""

import functools
import sys
from typing import Any

import recorder
import recorder_extension
import recorder_format as form
from recorder_format import varint

_monitoring: Any = getattr(sys, "monitoring", None)
_originals: dict = dict(vars(_monitoring)) if _monitoring else {}  # the program may replace those of the module
_set_events: Any = _originals.get("set_events")
_set_local_events: Any = _originals.get("set_local_events")
_get_tool: Any = _originals.get("get_tool")
_register: Any = _originals.get("register_callback")
_DISABLE, _LINE = _originals.get("DISABLE"), getattr(_originals.get("events"), "LINE", 0)
_getframe = sys._getframe
_TOOL = "glasshouse"
_REMOVED = "the program has taken the recorder away"
_UNWIND, _RETURN, _SUSPEND = varint(form.UNWIND), varint(form.RETURN), varint(form.SUSPEND)


class MonitoringRecorder(recorder.Recorder):
    kind = "monitoring"

    def _install(self) -> None:
        e = _originals["events"]
        self._tool = _originals["DEBUGGER_ID"]
        _originals["use_tool_id"](self._tool, _TOOL)
        self._hooks = {
            e.PY_START: self._on_start,
            e.PY_RESUME: self._on_resume,
            e.PY_THROW: self._on_throw,
            e.PY_RETURN: self._on_return,
            e.PY_YIELD: self._on_yield,
            e.PY_UNWIND: self._on_unwind,
            e.LINE: self._on_line,
            e.RAISE: self._on_raise,
            e.EXCEPTION_HANDLED: self._on_handled,
        }
        for event, hook in self._hooks.items():
            _register(self._tool, event, hook)
        self._local_events = e.LINE | e.PY_RETURN | e.PY_YIELD | e.PY_RESUME
        self._global_events = e.PY_START | e.PY_THROW | e.PY_UNWIND | e.RAISE | e.EXCEPTION_HANDLED
        _set_events(self._tool, self._global_events)
        for name in ("free_tool_id", "clear_tool_id", "register_callback", "set_events", "set_local_events"):
            self._guard.replace(_monitoring, name, functools.partial(self._on_monitoring_call, name))

    def _on_monitoring_call(self, name: str, original, *args):
        if args and type(args[0]) is int and args[0] == self._tool:
            self._end_by_call(f"sys.monitoring.{name}")
        return original(*args)

    def _reopen(self) -> None:
        for _, code in self._codes.values():
            _set_local_events(self._tool, code, self._local_events)
        _set_events(self._tool, self._global_events)

    def _uninstall(self) -> str:
        if _get_tool(self._tool) != _TOOL:
            return _REMOVED
        self._silence()
        for event in self._hooks:
            _register(self._tool, event, None)
        self._hooks.clear()
        _originals["free_tool_id"](self._tool)
        return ""

    def _silence(self) -> None:
        if _get_tool(self._tool) != _TOOL:
            return
        _set_events(self._tool, 0)
        for _, code in self._codes.values():
            _set_local_events(self._tool, code, 0)

    def _near_limit(self, frame, known) -> bool:
        if not super()._near_limit(frame, known):
            return False
        if self._pause is not None:  # a line of the module ends the pause: there the stack is short
            for described, code in self._codes.values():
                if described.module:
                    _set_local_events(self._tool, code, _LINE)
        return True

    def _on_start(self, code, _offset):
        if code.co_filename != self._filename:
            return _DISABLE
        if self.ended:
            return None
        try:
            with self._lock:
                new = id(code) not in self._codes
                known = self._enter(_getframe(1))
                if new:
                    _set_local_events(self._tool, code, self._local_events)
                self._near_limit(_getframe(1), known)
        except Exception as error:
            self._hook_failed(error)
        if self._channel.interrupted:
            self._raise_interrupt()
        return None

    def _on_resume(self, code, _offset):
        self._record(code, _getframe(1), self._nothing)

    def _on_throw(self, code, _offset, _error):
        self._record(code, _getframe(1), self._nothing)

    def _on_return(self, code, _offset, value):
        self._record(code, _getframe(1), self._leave, _RETURN, value)

    def _on_yield(self, code, _offset, value):
        self._record(code, _getframe(1), self._leave, _SUSPEND, value)

    def _on_unwind(self, code, _offset, error):
        self._record(code, _getframe(1), self._unwind, error)

    def _on_line(self, code, line):
        self._record(code, _getframe(1), self._record_line, line)

    def _on_raise(self, code, _offset, error):
        self._record(code, _getframe(1), self._raise, error)

    def _on_handled(self, code, _offset, _error):
        self._record(code, _getframe(1), self._catch)

    def _record(self, code, frame, record, *args) -> None:
        """Calls record(frame, its Frame, *args) under the lock, for user code."""
        if code.co_filename != self._filename:
            return
        if self.ended:
            if self._pause is None or code.co_name != "<module>":
                return
            self._resume(self._pause)
            if self.ended:
                return
        self._acquire()
        try:
            known = self._frames.get(frame)
            if known is None or known.suspended:
                known = self._enter(frame)
            record(frame, known, *args)
        except Exception as error:
            self._hook_failed(error)
        finally:
            self._release()
        if self._channel.interrupted:
            self._raise_interrupt()

    def _nothing(self, _frame, _known) -> None:
        pass

    def _catch(self, _frame, known) -> None:
        self._handled(known)

    def _unwind(self, frame, known, error) -> None:
        self._leave(frame, known, _UNWIND + self._failure(error), raised=True)


def fast_recorder() -> "type[MonitoringRecorder]":
    """Returns the recorder with its events in C. Raises ImportError if the extension is not built for this version."""
    base = recorder_extension.extension_recorder()

    class FastRecorder(base, MonitoringRecorder):  # type: ignore[misc, valid-type]
        """Its callbacks are methods of the extension."""

        def _install(self) -> None:
            self._disable = _DISABLE
            super()._install()

        def _watch_code(self, code) -> None:
            """Begins the events of user code that starts for the first time."""
            if not self.ended:
                _set_local_events(self._tool, code, self._local_events)

    return FastRecorder
