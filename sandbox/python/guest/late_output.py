"""What threads print after the run that began them, while a later run is streamed.

A notebook shows such text at the cell that began the thread. A pipe does not say who wrote to it, so the text goes to
the supervisor in a frame, with the execution to which it belongs.
"""

import builtins
import io
import threading

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_TEXT = 100_000  # bytes of one frame; a byte may need six in JSON

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

    def begin_run(self, execution: str, streams) -> None:
        """Assigns the threads that are new to the run before, and sends what they print on streams in frames."""
        threads = [thread for thread in _enumerate() if thread is not _main]
        before = self._origins
        self._origins = {}
        for thread in threads:
            known = before.get(thread.ident)
            is_known = known is not None and known[0] is thread
            self._origins[thread.ident] = known if is_known else (thread, self._execution)
        self._execution = execution
        for name, stream in zip(("stdout", "stderr"), streams):
            file = getattr(stream, "buffer", None)
            if type(file) is not Output:
                continue
            vars(file).pop("write", None)
            if self._origins:
                file.write = self._writer(name, file)  # type: ignore[method-assign]

    def _writer(self, name: str, file: Output):
        def write(data):
            known = self._origins.get(_ident())
            if known is None or _active.get(_ident()) is not known[0] or not known[1]:
                return _write(file, data)
            for first in range(0, len(data), MAX_TEXT):
                part = bytes(data[first : first + MAX_TEXT])
                if not self._channel.late(known[1], name, part.decode("utf-8", "replace")):
                    return _write(file, data[first:])
            return len(data)

        return write
