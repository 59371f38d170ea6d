"""The recorder on sys.settrace, for Python 3.11, and its variant with the C extension recorder_fast."""

import inspect
import sys
import threading

import recorder
import recorder_code
import recorder_format as form
import recorder_objects
import recorder_variables
from recorder_format import varint

_settrace, _gettrace = sys.settrace, sys.gettrace
ABI_VERSION = 4  # of the interface between FastRecorder and the extension: recorder_fast/recorder.h has the same number
_REMOVED = "the program has taken the recorder away"
_UNWIND, _RETURN, _SUSPEND = varint(form.UNWIND), varint(form.RETURN), varint(form.SUSPEND)


class SettraceRecorder(recorder.Recorder):
    kind = "settrace"
    raising_ends_events = True

    def _install(self) -> None:
        self._hook, self._frame_hook = self._on_call, self._make_frame_hook()
        threading.settrace(self._hook)
        _settrace(self._hook)

    def _uninstall(self) -> str:
        ours = _gettrace() is self._hook
        self._silence()
        return "" if ours else _REMOVED

    def _silence(self) -> None:
        _settrace(None)
        threading.settrace(None)

    def _on_call(self, frame, event, _arg):
        code = frame.f_code
        if code.co_filename != self._filename or code.co_name in recorder._COMPREHENSIONS or self.ended:
            return None
        try:
            with self._lock:
                known = self._enter(frame)
                if self._near_limit(known):
                    return None
        except Exception as error:
            self._hook_failed(error)
        if self._channel.interrupted:
            self._raise_interrupt()
        return self._frame_hook

    def _make_frame_hook(self):
        """Returns the hook of the events of a frame. It is a closure, which is faster than a method."""
        acquire, release, channel = self._lock.acquire, self._lock.release, self._channel
        frame_of, record_line = self._frames.get, self._record_line

        def hook(frame, event, arg):
            if self.ended:
                return None
            acquire()
            try:
                known = frame_of(frame)
                if known is None or known.suspended:  # an exception is thrown into it, or it is closed
                    known = self._enter(frame)
                if event == "line":
                    record_line(frame, known, frame.f_lineno)
                elif event == "exception":
                    self._on_exception(frame, known, *arg)
                elif event == "return":
                    self._on_return(frame, known, arg)
            except Exception as error:
                self._hook_failed(error)
            finally:
                release()
            if channel.interrupted:
                self._raise_interrupt()
            return hook

        return hook

    def _on_exception(self, frame, known, kind, error, trace) -> None:
        if kind is StopIteration or kind is StopAsyncIteration:  # error may be a plain value
            known.failure = self._writer.name(recorder_objects.label(kind)) + b"N"
            return
        known.thrown, known.failure = True, self._failure(error)
        self._raise(frame, known, error, trace)

    def _on_return(self, frame, known, value) -> None:
        at = frame.f_lasti
        code = known.code
        if at in code.returns:
            self._leave(frame, known, _RETURN, value)
        elif at in code.yields and not known.thrown:
            self._leave(frame, known, _SUSPEND, value)
        else:
            failure = known.failure or self._writer.name("BaseException") + b"N"
            self._leave(frame, known, _UNWIND + failure, raised=True)


def fast_recorder() -> "type[SettraceRecorder]":
    """Returns the recorder with its events in C. Raises ImportError if the extension is not built for this version."""
    import recorder_fast

    if getattr(recorder_fast, "ABI_VERSION", 0) != ABI_VERSION:
        raise ImportError("recorder_fast was built for another version of Glasshouse; run scripts/setup")
    recorder_objects.ENTRY_TYPES.add(recorder_fast.Entry)

    class FastRecorder(recorder_fast.Recorder, SettraceRecorder):
        """Reads the slots of frames, so that every frame can be read."""

        kind = "extension"
        locals_are_copies = True
        raising_ends_events = False

        def start(self) -> None:
            self._lock = self
            self._few_names = recorder_variables.FEW_NAMES
            self._full_read_interval = recorder_variables.FULL_READ_INTERVAL
            self._set_prefixes, self._global_prefixes = self._prefixes[form.SET], self._prefixes[form.GLOBAL]
            self._format, self._task_step, self._out = form, recorder._TASK_STEP, self._writer.out
            self._wait, self._max_objects = self._ring.wait, self._objects.max_objects
            self._open_ring(self._ring.memory)
            super().start()

        def _install(self) -> None:
            threading.settrace(self._begin_thread)
            self.attach()

        def _begin_thread(self, frame, event, arg):
            """Handles the first event of a new thread."""
            self.attach()

        def _uninstall(self) -> str:
            ours = self.is_attached()
            self._silence()
            return "" if ours else _REMOVED

        def _silence(self) -> None:
            self.detach()
            threading.settrace(None)

        def _close(self) -> None:
            self._close_ring()
            super()._close()

        def _code_of(self, code):
            known = super()._code_of(code)
            if known.unread in (recorder_code.CLOSURE, recorder_code.LOCALS):
                known.unread = ""
            return known

        def variables(self, frame, alone) -> dict:
            return self._frame_locals(frame)

        def assign(self, frame, name, value, innermost) -> bool:
            return self._assign_variable(frame, name, value) or not frame.f_code.co_flags & inspect.CO_OPTIMIZED

        # -- called from C, in rare cases

        def _record_unread(self, code) -> None:
            if code.unread:
                self._writer.out += varint(form.UNREAD) + self._writer.name(code.unread)

        def _set_failure(self, known, kind=BaseException, error=None) -> None:
            if error is None:
                known.failure = self._writer.name(recorder_objects.label(kind)) + b"N"
            else:
                known.failure = self._failure(error)

        def _reach_limit(self) -> None:
            self._end(recorder._LIMIT)

        def _apply_budget(self) -> None:
            self._budget.apply()

        def _stop_at(self, frame, known, line: int) -> None:
            self.control.line(frame, known, line)

        def _stop_raised(self, frame, known, raised) -> None:
            self.control.raised(frame, known, raised[1], raised[2])

    return FastRecorder
