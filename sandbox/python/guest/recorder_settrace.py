"""The recorder on sys.settrace, for Python 3.11, and its variant with the C extension recorder_fast."""

import inspect
import sys
import threading

import library_values
import recorder
import recorder_code
import recorder_format as form
import recorder_objects
import recorder_variables
from recorder_format import varint

_settrace, _gettrace, _thread_settrace = sys.settrace, sys.gettrace, threading.settrace
_ident = threading.get_ident
ABI_VERSION = 7  # of the interface between FastRecorder and the extension: recorder_fast/recorder.h has the same number
_REMOVED = "the program has taken the recorder away"
_UNWIND, _RETURN, _SUSPEND = varint(form.UNWIND), varint(form.RETURN), varint(form.SUSPEND)


class SettraceRecorder(recorder.Recorder):
    kind = "settrace"
    raising_ends_events = True

    def _install(self) -> None:
        self._hook = self._make_hook()
        self._reopen()
        self._guard.replace(sys, "settrace", self._on_settrace)
        self._guard.replace(threading, "settrace", self._on_thread_settrace)

    def _make_hook(self):
        self._frame_hook = self._make_frame_hook()
        return self._on_call

    def _reopen(self) -> None:
        _thread_settrace(self._hook)
        self._attach_thread()

    def _uninstall(self) -> str:
        is_attached = self._is_attached()
        self._silence()
        return "" if is_attached else _REMOVED

    def _silence(self) -> None:
        _settrace(None)
        _thread_settrace(None)

    def _is_attached(self) -> bool:
        return _gettrace() is self._hook

    def _is_own_hook(self, function) -> bool:
        """Tells whether the program passes on what gettrace has returned."""
        return function is self._hook

    # -- called by the program

    def _on_settrace(self, original, *args):
        if len(args) == 1:
            if self._is_own_hook(args[0]):
                if not self.ended:
                    self._attach_thread()
                return None
            if self._is_attached():
                if _ident() == self._main_thread:
                    self._end_by_call("sys.settrace")
                else:
                    self._lose_by_call("sys.settrace in a thread", recorder.THREAD_STEPS)
        return original(*args)

    def _attach_thread(self) -> None:
        _settrace(self._hook)

    def _on_thread_settrace(self, original, *args, **kwargs):
        hook = args[0] if args else kwargs.get("func")
        if hook is None and not self.ended:
            return None  # the recorder's hook stays
        if hook is not None and not self._is_own_hook(hook):
            self._lose_by_call("threading.settrace", recorder.LATER_THREADS)
        return original(*args, **kwargs)

    def _on_call(self, frame, event, _arg):
        code = frame.f_code
        if code.co_filename != self._filename or self.ended:
            return None
        try:
            with self._lock:
                known = self._enter(frame)
                if self._near_limit(frame, known):
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
            self._raw = library_values.Raw
            self._wait, self._max_objects = self._ring.wait, self._objects.max_objects
            self._open_ring(self._ring.memory)
            super().start()

        def _make_hook(self):
            return self._begin_thread

        def _begin_thread(self, frame, event, arg):
            """Handles the first event of a new thread."""
            self.attach()

        def _is_attached(self) -> bool:
            return self.is_attached()

        def _is_own_hook(self, function) -> bool:
            return function is self or function is self._hook

        def _attach_thread(self) -> None:
            self.attach()

        def _silence(self) -> None:
            self.detach()
            _thread_settrace(None)

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

        def _read_edited(self, frame, known, local: dict) -> None:
            self._read_frame(frame, known)

        # -- called from C, in rare cases

        def _record_unread(self, code) -> None:
            if code.unread:
                self._writer.out += varint(form.UNREAD) + self._writer.name(code.unread)

        def _set_failure(self, known, kind=BaseException, error=None) -> None:
            if error is None:
                known.failure = self._writer.name(recorder_objects.label(kind)) + b"N"
            else:
                known.failure = self._failure(error)

        def _apply_budget(self) -> None:
            self._budget.apply()

        def _stop_at(self, frame, known, line: int) -> None:
            self.control.line(frame, known, line)

        def _stop_raised(self, frame, known, raised) -> None:
            self.control.raised(frame, known, raised[1], raised[2])

    return FastRecorder
