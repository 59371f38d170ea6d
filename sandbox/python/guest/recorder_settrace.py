"""The recorder on sys.settrace, for Python 3.11, and its variant with the C extension recorder_fast."""

import sys
import threading

import recorder
import recorder_extension
import recorder_format as form
import recorder_objects
from recorder_format import varint

_settrace, _gettrace, _thread_settrace = sys.settrace, sys.gettrace, threading.settrace
_ident = threading.get_ident
_REMOVED = "the program has taken the recorder away"
_NO_HOOK = "the program set f_trace of {}; later steps of this call are not recorded"
_UNWIND, _RETURN, _SUSPEND = varint(form.UNWIND), varint(form.RETURN), varint(form.SUSPEND)


class SettraceRecorder(recorder.Recorder):
    kind = "settrace"
    raising_ends_events = True

    def _install(self) -> None:
        self._hook = self._make_hook()
        self._reopen()
        self._guard.replace(sys, "settrace", self._on_settrace)
        self._guard.replace(threading, "settrace", self._on_thread_settrace)

    def stop(self) -> None:
        for frame, known in self._live_frames():
            self._check_hook(frame, known)
        super().stop()

    def _check_hook(self, frame, known) -> None:
        """Records that the program has set f_trace of a frame, which has no events since then. The recorder learns of
        it from a call of the frame, or at the end of the run."""
        if not self.ended and frame.f_trace is not self._frame_hook and known.number not in self._without_hook:
            self._without_hook.add(known.number)
            self._lose(_NO_HOOK.format(frame.f_code.co_name))

    def _make_hook(self):
        self._frame_hook = self._make_frame_hook()
        self._without_hook: set[int] = set()  # numbers of frames whose f_trace the program has set
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
        caller = self._frames.get(frame.f_back)
        if caller is not None:
            self._check_hook(frame.f_back, caller)
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
    base = recorder_extension.extension_recorder()

    class FastRecorder(base, SettraceRecorder):  # type: ignore[misc, valid-type]
        def _make_hook(self):
            return self._begin_thread

        def _check_hook(self, frame, known) -> None:
            """The extension has its events whatever f_trace is."""

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

    return FastRecorder
