"""Writes records as bytes. The package comment of debugger/recording specifies the format.

This module does not depend on frames or objects of the program.
"""

import struct

from library_values import Raw

HEAD, NAME, CODE, THREAD, PUSH, RESUME, SUSPEND, RETURN, UNWIND, FRAME, LINE, SET = range(1, 13)
GLOBAL, DELETE, FORGET, OBJECT, MUTATE, FREE, RAISE, HANDLED, OUTPUT, EVENT, LOST, UNREAD, STATEMENT = range(13, 26)
EXACT, TRUNCATED, SAMPLED, PART_UNREAD = range(4)
OPAQUE, ITEMS, PAIRS, ATTRIBUTES, TABLE, DESCRIBED, FRAMED = range(7)
RESTATED, SUSPENDED = 1, 2

VERSION = 2
MAX_TEXT = 4096  # characters of a str, and bytes of a bytes or an int, that are recorded whole
CUT_TEXT = 1000  # characters that are recorded of a longer one
MAX_NAME = 200

_ONE_BYTE = [bytes([i]) for i in range(128)]
SHORT_LINE = [bytes([i]) for i in range(0x80, 0x100)]  # line records by delta + 64
_double = struct.Struct("<d").pack
_complex = struct.Struct("<dd").pack


def varint(value: int) -> bytes:
    """Encodes an unsigned integer of at most 64 bits, seven bits a byte, the lowest first."""
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    """Encodes a signed integer of at most 63 bits."""
    return varint(value << 1 if value >= 0 else ~(value << 1))


def line(delta: int) -> bytes:
    """Returns a whole line record."""
    return SHORT_LINE[delta + 64] if -64 <= delta < 64 else _ONE_BYTE[LINE] + zigzag(delta)


def text(value: str) -> bytes:
    """Encodes a str; characters that UTF-8 lacks are escaped."""
    data = value.encode("utf-8", "backslashreplace")
    return varint(len(data)) + data


# -- scalars: values whose class is exactly a built-in class


# by v, also < 0
_TINY = [b"i" + bytes([v << 1]) for v in range(64)] + [b"i" + bytes([~(v << 1)]) for v in range(-64, 0)]
_int16, _int32 = struct.Struct("<BBh").pack, struct.Struct("<BBi").pack


def integer(v) -> "bytes | None":
    """Encodes an int in the size that is fastest to write; None if it is too large."""
    if -64 <= v < 64:
        return _TINY[v]
    if -32768 <= v < 32768:
        return _int16(73, 2, v)
    if -0x80000000 <= v < 0x80000000:
        return _int32(73, 4, v)
    size = v.bit_length() // 8 + 1
    if size > MAX_TEXT:
        return None
    return b"I" + varint(size) + v.to_bytes(size, "little", signed=True)


def _str(v) -> bytes:
    size = len(v)
    if size > MAX_TEXT:
        return b"S" + varint(size) + text(v[:CUT_TEXT])
    try:
        data = v.encode()
    except UnicodeEncodeError:
        data = v.encode("utf-8", "surrogatepass")
        return b"u" + varint(len(data)) + data
    return b"s" + varint(len(data)) + data


def _bytes(v) -> bytes:
    size = len(v)
    return b"b" + varint(size) + v if size <= MAX_TEXT else b"B" + varint(size) + varint(CUT_TEXT) + v[:CUT_TEXT]


SCALARS = {
    int: integer,
    str: _str,
    bytes: _bytes,
    bool: lambda v: b"T" if v else b"F",
    float: lambda v: b"f" + _double(v),
    complex: lambda v: b"c" + _complex(v.real, v.imag),
    type(None): lambda v: b"N",
    type(...): lambda v: b".",
    Raw: lambda v: b"R" + text(v.text),
}


def scalar(v) -> "bytes | None":
    """Encodes a scalar; None for a value that is recorded as an object."""
    kind = type(v)
    if type(kind) is not type:  # a metaclass of the user's may have a __hash__
        return None
    encode = SCALARS.get(kind)
    return encode(v) if encode is not None else None


class Writer:
    """Collects records in out, and definitions in defined, which may be the same buffer."""

    def __init__(self):
        self.out = self.defined = bytearray()
        self._names: dict = {}
        self._codes = self._threads = 0

    def head(self, recorder: str, python: str) -> None:
        self.defined += _ONE_BYTE[HEAD] + varint(VERSION) + text(recorder) + text(python)

    def name(self, name: str) -> bytes:
        """Returns the encoded number of a name, and defines it the first time."""
        number = self._names.get(name)
        if number is None:
            self.defined += _ONE_BYTE[NAME] + text(str.__str__(name)[:MAX_NAME])
            number = self._names[name] = varint(len(self._names) + 1)
        return number

    def code(self, file: str, name: str, first_line: int) -> bytes:
        """Defines a code object and returns its encoded number."""
        names = self.name(file) + self.name(name)
        self.defined += _ONE_BYTE[CODE] + names + varint(first_line)
        self._codes += 1
        return varint(self._codes)

    def statement(self, description: str) -> None:
        """Defines the next statement of the program."""
        self.defined += _ONE_BYTE[STATEMENT] + text(description)

    def thread(self, is_task: bool, parent: int, name: str) -> int:
        """Defines a thread or an asyncio task and returns its number."""
        self.defined += _ONE_BYTE[THREAD] + varint(2 if is_task else 1) + varint(parent) + text(name)
        self._threads += 1
        return self._threads
