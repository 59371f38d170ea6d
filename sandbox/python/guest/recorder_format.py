"""Records as bytes. The package comment of debugger/recording specifies the format; this is its
writer, and knows nothing of frames or objects.
"""

import struct

HEAD, NAME, CODE, LANE, PUSH, RESUME, SUSPEND, RETURN, UNWIND, FRAME, LINE, SET = range(1, 13)
GLOBAL, DELETE, FORGET, OBJECT, MUTATE, FREE, RAISE, HANDLED, OUTPUT, EVENT, LOST, UNREAD = range(13, 25)
EXACT, TRUNCATED, SAMPLED, PART_UNREAD = range(4)
OPAQUE, ITEMS, PAIRS, ATTRIBUTES, TABLE = range(5)
RESTATED, SUSPENDED = 1, 2

MAX_TEXT = 4096  # characters, and bytes of a bytes or of an integer, that are whole
CUT_TEXT = 1000  # what is kept of a longer one
MAX_NAME = 200

_ONE = [bytes([i]) for i in range(128)]
SHORT = [bytes([i]) for i in range(0x80, 0x100)]
_double = struct.Struct("<d").pack
_complex = struct.Struct("<dd").pack


def n(value: int) -> bytes:
    """An unsigned number of at most 64 bits."""
    if value < 128:
        return _ONE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def z(value: int) -> bytes:
    """A signed number of at most 63 bits."""
    return n(value << 1 if value >= 0 else ~(value << 1))


def line(delta: int) -> bytes:
    """A whole line record."""
    return SHORT[delta + 64] if -64 <= delta < 64 else _ONE[LINE] + z(delta)


def text(value: str) -> bytes:
    """A text of any encodable string."""
    data = value.encode("utf-8", "backslashreplace")
    return n(len(data)) + data


# -- values: what no class of the user's can be


_TINY = [b"i" + bytes([v << 1]) for v in range(64)] + [b"i" + bytes([~(v << 1)]) for v in range(-64, 0)]  # by v, from either end


_fits16, _fits32 = struct.Struct("<BBh").pack, struct.Struct("<BBi").pack


def integer(v) -> "bytes | None":
    """The bytes of an int: the fewest, where that is quick."""
    if -64 <= v < 64:
        return _TINY[v]
    if -32768 <= v < 32768:
        return _fits16(73, 2, v)
    if -0x80000000 <= v < 0x80000000:
        return _fits32(73, 4, v)
    size = v.bit_length() // 8 + 1
    if size > MAX_TEXT:
        return None
    return b"I" + n(size) + v.to_bytes(size, "little", signed=True)


def _str(v) -> bytes:
    size = len(v)
    if size > MAX_TEXT:
        return b"S" + n(size) + text(v[:CUT_TEXT])
    try:
        data = v.encode()
    except UnicodeEncodeError:
        data = v.encode("utf-8", "surrogatepass")
        return b"u" + n(len(data)) + data
    return b"s" + n(len(data)) + data


def _bytes(v) -> bytes:
    size = len(v)
    return b"b" + n(size) + v if size <= MAX_TEXT else b"B" + n(size) + n(CUT_TEXT) + v[:CUT_TEXT]


SCALARS = {
    int: integer,
    str: _str,
    bytes: _bytes,
    bool: lambda v: b"T" if v else b"F",
    float: lambda v: b"f" + _double(v),
    complex: lambda v: b"c" + _complex(v.real, v.imag),
    type(None): lambda v: b"N",
    type(...): lambda v: b".",
}


def scalar(v) -> "bytes | None":
    """The value's bytes, or None for what is an object here."""
    kind = type(v)
    if type(kind) is not type:  # a metaclass may have a __hash__ of the user's
        return None
    encode = SCALARS.get(kind)
    return encode(v) if encode is not None else None


class Writer:
    """Gathers records in out; definitions are gathered in defined, which may be the same."""

    def __init__(self):
        self.out = self.defined = bytearray()
        self._names: dict = {}
        self._codes = self._lanes = 0

    def head(self, recorder: str, python: str) -> None:
        self.defined += _ONE[HEAD] + n(2) + text(recorder) + text(python)

    def name(self, name: str) -> bytes:
        """The name's number, as bytes."""
        number = self._names.get(name)
        if number is None:
            self.defined += _ONE[NAME] + text(str.__str__(name)[:MAX_NAME])
            number = self._names[name] = n(len(self._names) + 1)
        return number

    def code(self, file: str, name: str, first: int) -> bytes:
        names = self.name(file) + self.name(name)
        self.defined += _ONE[CODE] + names + n(first)
        self._codes += 1
        return n(self._codes)

    def lane(self, task: bool, parent: int, name: str) -> int:
        self.defined += _ONE[LANE] + n(2 if task else 1) + n(parent) + text(name)
        self._lanes += 1
        return self._lanes
