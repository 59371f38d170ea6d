"""The recorders with the C extension recorder_fast: what they do in Python, in rare cases."""

import inspect

import library_values
import recorder
import recorder_code
import recorder_format as form
import recorder_objects
import recorder_variables
from recorder_format import varint

ABI_VERSION = 13  # of the interface to the extension: recorder_fast/recorder.h has the same number


def extension_recorder() -> type:
    """Returns the first base class of a recorder with its events in C; the second is a recorder.Recorder.

    It raises ImportError if the extension is not built for this version of Python.
    """
    import recorder_fast

    if getattr(recorder_fast, "ABI_VERSION", 0) != ABI_VERSION:
        raise ImportError("recorder_fast was built for another version of Glasshouse; run scripts/setup")
    recorder_objects.ENTRY_TYPES.add(recorder_fast.Entry)

    class ExtensionRecorder(recorder_fast.Recorder):
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

        def _close(self) -> None:
            self._close_ring()
            super()._close()

        def _code_of(self, code):
            known = super()._code_of(code)
            if code.co_flags & inspect.CO_OPTIMIZED and known.unread in (recorder_code.CLOSURE, recorder_code.LOCALS):
                known.unread = ""
            return known

        def variables(self, frame, alone) -> dict:
            return self._frame_locals(frame)

        def assign(self, frame, name, value, innermost) -> bool:
            return self._assign_variable(frame, name, value) or not frame.f_code.co_flags & inspect.CO_OPTIMIZED

        def _read_edited(self, frame, known, local: dict) -> None:
            self._read_frame(frame, known)

        # -- called from C

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

        def _stop_raised(self, frame, known, error, trace) -> None:
            self.control.raised(frame, known, error, trace)

    return ExtensionRecorder
