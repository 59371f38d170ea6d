"""What threads print after the run that began them, while a later run is streamed.

A notebook shows such text at the cell that began the thread. A pipe does not say who wrote to it, so the text goes to
the supervisor in a frame, with the execution to which it belongs.
"""

import builtins
import io
import threading

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_TEXT = 100_000  # bytes of one frame; a byte may need six in JSON
MAX_HELD = 1_000_000  # bytes that wait for the next run

_active, _enumerate, _ident = threading._active, threading.enumerate, threading.get_ident  # type: ignore[attr-defined]
_main = threading.main_thread()
_write = io.FileIO.write


class Output(io.FileIO):
    """The file behind stdout or stderr. A LateOutput may replace its write."""


class LateOutput:
    """Knows which execution began each thread."""

    def __init__(self, channel):
        self._channel = channel
        self._execution = ""
        self._origins: dict = {}  # by identifier: a thread, and its execution
        self._is_watching = False
        # What was printed after the end of a run, before the process stopped: execution, file, stream and bytes.
        self._held: list = []

    def end_run(self, streams) -> None:
        """Assigns the new threads to the run that ends, and sends what they print from now on in frames: they
        may print before the next run has begun."""
        if len(_active) == 1 and not self._is_watching:
            return  # the most frequent case: there is no other thread, and there was none
        origins: dict = {}  # assigned as a whole below, because threads go on and look themselves up
        for thread in _enumerate():
            if thread is not _main:
                known = self._origins.get(thread.ident)
                is_known = known is not None and known[0] is thread
                origins[thread.ident] = known if is_known else (thread, self._execution)
        self._origins = origins
        self._watch(streams)

    def begin_run(self, execution: str, streams) -> None:
        """Begins a run, whose streams may be new, with the text that waits for it."""
        self._execution = execution
        if self._is_watching:
            self._watch(streams)
        if self._held:
            with self._channel.request_lock:
                held, self._held = self._held, []
                for entry in held:
                    self._print(*entry)

    def _watch(self, streams) -> None:
        self._is_watching = bool(self._origins)
        for name, stream in zip(("stdout", "stderr"), streams):
            file = getattr(stream, "buffer", None)
            if type(file) is Output:
                if self._origins:  # without a moment between the old write and the new one: threads go on
                    file.write = self._writer(name, file)  # type: ignore[method-assign]
                else:
                    vars(file).pop("write", None)

    def _writer(self, name: str, file: Output):
        def write(data):
            known = self._origins.get(_ident())
            if known is None or _active.get(_ident()) is not known[0] or not known[1]:
                return _write(file, data)
            data, first = bytes(data), 0
            while first < len(data):
                end = first + MAX_TEXT
                for _ in range(3):  # at most so many bytes follow the first of a character
                    if end < len(data) and data[end] & 0xC0 == 0x80:
                        end -= 1
                self._print(known[1], file, name, data[first:end])
                first = end
            return len(data)

        return write

    def _print(self, execution: str, file: Output, stream: str, data: bytes) -> None:
        with self._channel.request_lock:
            if self._channel.late(execution, stream, data.decode("utf-8", "replace")):
                return
            if self._channel.holds_late:  # the run has ended, and its text is complete: the next run sends it
                if sum(len(entry[3]) for entry in self._held) + len(data) <= MAX_HELD:
                    self._held.append((execution, file, stream, data))
                return
        _write(file, data)
