"""Makes texts of values where a program is stopped, with the __repr__ of the program's classes.

The recorder never calls one: it is the program's code, which may change the program, print, or take long. A person who
inspects the stopped program wants to see what the class says of itself, and can wait for it. So only a __repr__ that
the program defines is called, not one that a library or dataclass makes, whose attributes tell more; a text takes at
most as long as the supervisor waits; and a __repr__ that was interrupted, or took long, is not called again.
"""

import builtins
import time
import types

import lookup
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_TIME = 0.5  # seconds of the texts of one answer; one __repr__ that takes as long is not called again
MAX_WHOLE = 80_000  # characters of a value that is copied: 12 bytes each as JSON fit into an answer
PROGRAM_FILE = "<execution "  # begins the file of a program

_clock = time.monotonic
_file_of = types.CodeType.co_filename.__get__
_code_of = types.FunctionType.__code__.__get__  # type: ignore[attr-defined]


class OwnTexts:
    """Makes texts of values with the __repr__ of the program's classes."""

    def __init__(self) -> None:
        self._slow: dict = {}  # code of each __repr__ that was too slow, by id
        self._until = 0.0
        self.used = False  # whether the last text has one of a __repr__

    def begin(self) -> None:
        """Begins an answer."""
        self._until = _clock() + MAX_TIME

    def preview(self, value, limit: int) -> str:
        self.used = False
        return self._made(values.Preview(limit, own_text=self._own), value, limit)

    def whole(self, value) -> str:
        """Returns the whole value, up to MAX_WHOLE characters."""
        self.used = False
        return self._made(_Whole(MAX_WHOLE, own_text=self._own), value, MAX_WHOLE)

    @staticmethod
    def _made(texts: values.Preview, value, limit: int) -> str:
        try:
            return texts.text(value, limit)
        except Exception:  # another thread changes the value
            return f"<{values.type_name(value)}>"

    def _own(self, value) -> "str | None":
        code = _own_repr(type(value))
        if code is None or id(code) in self._slow or _clock() > self._until:
            return None
        began = _clock()
        try:
            found = repr(value)
        except KeyboardInterrupt:
            self._slow[id(code)] = code
            self._until = 0.0
            return None
        except BaseException:  # the attributes tell more than the failure
            return None
        if _clock() - began > MAX_TIME:
            self._slow[id(code)] = code
        self.used = True
        return str.__str__(found)


class _Whole(values.Preview):
    """Makes texts without the bounds that make them short. A value that holds itself ends there."""

    max_levels = max_nested = 50
    max_shown = values.MAX_ITEMS

    def __init__(self, limit: int, own_text):
        super().__init__(limit, own_text=own_text)
        self._open: set = set()

    def show(self, v, limit: int, depth: int = 0) -> str:
        if id(v) in self._open:
            return "..."
        self._open.add(id(v))
        try:
            return super().show(v, limit, depth)
        finally:
            self._open.discard(id(v))


def _own_repr(kind: type) -> "types.CodeType | None":
    """Returns the code of the __repr__ that objects of a class have from the program, or None."""
    found = lookup.in_class(kind, "__repr__")
    if type(found) is not types.FunctionType:
        return None
    code = _code_of(found)
    return code if _file_of(code).startswith(PROGRAM_FILE) else None
