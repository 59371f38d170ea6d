"""Reads values of the standard library, numpy and pandas that can't be opened, without running user code.

A value counts only if its class is exactly the library's own. A class that Python code can change must also be the one
that its library has under that name.
"""

import builtins
import collections
import datetime
import decimal
import enum
import fractions
import functools
import gc
import itertools
import operator
import pathlib
import re
import sys
import types
import uuid
import zoneinfo
from typing import Any

import lookup

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

OWN_FRAMES: list = []  # the classes of DataFrames that helpers return
ZONES = {type(None), datetime.timezone, zoneinfo.ZoneInfo}  # classes whose texts are not the user's

MAX_FIELDS = 1000  # of a dtype whose text names them
MAX_TEXT = 16_000  # characters, of up to four bytes, of the text of a value
MAX_BITS = 14_284  # of an int in a text: 4300 digits, as Python's own limit; to write digits takes quadratic time

_flags_of, _mro_of, _plain_name_of = (vars(type)[name].__get__ for name in ("__flags__", "__mro__", "__name__"))
_args_of = vars(BaseException)["args"].__get__
_referents, _islice, _modules = gc.get_referents, itertools.islice, sys.modules
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: Python code may have made the class, or changed it
_VIEWS: tuple = type({}.keys()), type({}.values()), type({}.items())
_known: dict = {}  # by id of a class: the class, and whether it is a library's
_DERIVABLE_IDS = {id(kind) for kind in (int, str, float, bytes, complex)}  # a class of the user's may have an __eq__
_BUILT_IN_SCALARS = {int, str, float, bool, bytes, complex, type(None)}


class Raw(tuple):
    """The text of a value that is not a scalar, as its repr would write it. It is a tuple because a table has many of
    them: an __init__ in Python would take three times as long."""

    __slots__ = ()
    text: Any = property(operator.itemgetter(0))


def raw(text: str) -> Raw:
    """Returns a Raw with the text, of which a very long one is cut: a recording refuses more than 64 KiB."""
    return Raw((text if len(text) <= MAX_TEXT else _cut(text),))


def raws(texts) -> list:
    return list(map(Raw, zip([text if len(text) <= MAX_TEXT else _cut(text) for text in texts])))


def _cut(text: str) -> str:
    return f"{text[:MAX_TEXT]}... [{len(text) - MAX_TEXT} more characters]"


def name_of(kind: type) -> str:
    """Returns the name of a class. User code can give it a name whose class is derived from str."""
    return str.__str__(_plain_name_of(kind))


def is_static(kind: type) -> bool:
    """Tells whether a class is written in C, so that user code can't have made or changed it."""
    return not _flags_of(kind) & _HEAP_TYPE


def is_from(kind: type, package: str, name: str = "") -> bool:
    """Tells whether a class is the one that a package has under the name, which is the class's own if it is empty."""
    if is_static(kind):
        module = lookup.module_of(kind)
        return module.partition(".")[0] == package and (not name or name_of(kind) == name)
    key = id(kind), package, name
    known = _known.get(key)
    if known is None or known[0] is not kind:
        module = package if name else lookup.module_of(kind)
        held = lookup.find(_modules, module) if module.partition(".")[0] == package else None
        found = lookup.find(vars(held), name or name_of(kind)) if type(held) is types.ModuleType else None
        known = _known[key] = kind, found is kind
    return known[1]


# -- functions that return the scalar that a value equals, or its text


def _number(v):
    """Reads a numpy scalar."""
    kind: Any = type(v)
    found = _numpy_item(kind)(v)
    if type(found) in _BUILT_IN_SCALARS and found is not None:
        return found
    return raw(repr(v))


@functools.cache
def _numpy_item(kind: type):
    return next(vars(base)["item"] for base in _mro_of(kind) if name_of(base) == "generic")


def _by_repr(v):
    return raw(repr(v))


def _moment(v):
    """Reads a datetime, time, timezone or pandas Timestamp, unless its time zone is of the user."""
    zone = getattr(v, "tzinfo", None)
    if type(zone) not in ZONES or type(zone) is datetime.timezone and type(zone.tzname(None)) is not str:
        return None
    return raw(repr(v))


def _zone(v):
    return raw(repr(v)) if type(v.tzname(None)) is str else None


def _uuid(v):
    return raw(repr(v)) if type(v.int) is int else None


def _scalar_text(v) -> str:
    return repr(v) if type(v) is not int or v.bit_length() <= MAX_BITS else f"<int of {v.bit_length()} bits>"


def _fraction(v):
    parts = v._numerator, v._denominator
    return raw(f"Fraction({', '.join(map(_scalar_text, parts))})") if all(type(part) is int for part in parts) else None


def _range(v):
    parts = (v.start, v.stop) if v.step == 1 else (v.start, v.stop, v.step)
    return raw(f"range({', '.join(map(_scalar_text, parts))})")


def _path(v):
    parts = getattr(v, "_raw_paths", None) or getattr(v, "_parts", None) or ()
    return raw(repr(v)) if all(type(part) is str for part in parts) else None


def _slice(v):
    parts = v.start, v.stop, v.step
    if not all(type(part) in _BUILT_IN_SCALARS for part in parts):
        return None
    return raw(f"slice({', '.join(map(_scalar_text, parts))})")


def _match(v):
    return raw(repr(v)) if type(v.string) in (str, bytes) else None


def _pattern(v):
    return raw(repr(v)) if type(v.pattern) in (str, bytes) else None


def _dtype(v):
    return raw(f"dtype('{dtype_text(v)}')")


def dtype_text(dtype) -> str:
    """Returns the str of a dtype of numpy or pandas. One with very many fields in fields is shown by its size: they may
    share their parts."""
    return str(dtype) if _count_fields(dtype, MAX_FIELDS) < MAX_FIELDS else f"|V{dtype.itemsize}"


def _count_fields(dtype, most: int) -> int:
    """Returns the number of fields in a dtype, also of fields in fields, or most if there are more."""
    count, inner = 0, getattr(dtype, "subdtype", None)
    held = [inner[0]] if inner else [each[0] for each in (getattr(dtype, "fields", None) or {}).values()]
    for each in held:
        if count >= most:
            break
        count += 1 + _count_fields(each, most - count - 1)
    return min(count, most)


_LEAVES: dict = {
    decimal.Decimal: _by_repr,
    datetime.datetime: _moment,
    datetime.date: _by_repr,
    datetime.time: _moment,
    datetime.timedelta: _by_repr,
    datetime.timezone: _zone,
    zoneinfo.ZoneInfo: _by_repr,
    uuid.UUID: _uuid,
    fractions.Fraction: _fraction,
    range: _range,
    slice: _slice,
    re.Match: _match,
    re.Pattern: _pattern,
    type(NotImplemented): _by_repr,
    **dict.fromkeys((pathlib.PurePosixPath, pathlib.PosixPath, pathlib.PureWindowsPath), _path),
}
_LEAVES_BY_ID = {id(kind): (kind, read) for kind, read in _LEAVES.items()}  # a class of the user's may have a __hash__
_PANDAS_LEAVES = {"Timestamp": _moment, "Timedelta": _by_repr, "Period": _by_repr, "Interval": _by_repr}


def leaf_reader(kind: type):
    """Returns the function that reads values of a class, or None. It returns a scalar, a Raw or None."""
    known = _LEAVES_BY_ID.get(id(kind))
    if known is not None:
        return known[1]
    if is_static(kind):
        if lookup.module_of(kind) == "numpy.dtypes":
            return _dtype
        return _number if _is_numpy_scalar(kind) else None
    name = name_of(kind)
    if name in _PANDAS_LEAVES and is_from(kind, "pandas", name):
        return _PANDAS_LEAVES[name]
    if name.endswith("Dtype") and is_from(kind, "pandas", name):
        return _dtype
    if name in ("NaTType", "NAType"):
        package = lookup.find(_modules, "pandas")
        only = lookup.find(vars(package), name[:-4]) if type(package) is types.ModuleType else None
        return _by_repr if type(only) is kind else None
    return None


def is_derived(kind: type) -> bool:
    """Tells whether a class, made in Python, is an enumeration or is derived from a scalar."""
    return not is_static(kind) and (type(kind) is enum.EnumType or _scalar_base(kind) is not None)


def _scalar_base(kind: type) -> Any:
    if is_static(kind):
        return None
    return next((base for base in _mro_of(kind) if id(base) in _DERIVABLE_IDS), None)


def derived_text(v, limit: int) -> str:
    """Returns the text of such a value, as repr writes it without code of its class: I(3), <E.A: 1>."""
    kind: Any = type(v)
    base, held, text = _scalar_base(kind), lookup.own_attributes(v), ""
    if type(kind) is enum.EnumType:
        member, value = lookup.find(held, "_name_"), lookup.find(held, "_value_")
        name = f"{name_of(kind)}.{member[:limit]}" if type(member) is str else name_of(kind)
        shown = value if type(value) in _BUILT_IN_SCALARS else None
        if shown is not None:
            text = repr(shown[:limit]) if type(shown) in (str, bytes) else _scalar_text(shown)
        return f"<{name}: {text}>" if text else f"<{name}>"
    if base in (str, bytes):
        text = repr(base.__getitem__(v, slice(limit)))
    elif base is int:
        text = _scalar_text(int.__add__(v, 0))
    else:
        text = base.__repr__(v)
    return f"{name_of(kind)}({text})"


def field_names(kind: type) -> tuple:
    """Returns the names of the fields of a named tuple, and () for another class."""
    if is_static(kind) or not any(base is tuple for base in _mro_of(kind)):
        return ()
    for base in _mro_of(kind):
        found = lookup.find(vars(type)["__dict__"].__get__(base), "_fields")
        if found is not None:
            return found if type(found) is tuple and all(type(name) is str for name in found) else ()
    return ()


def _is_numpy_scalar(kind: type) -> bool:
    return lookup.module_of(kind) == "numpy" and any(
        name_of(base) == "generic" and lookup.module_of(base) == "numpy" and is_static(base) for base in _mro_of(kind)
    ) and name_of(kind) not in ("void", "object_")  # fmt: skip


# -- containers


def deque_items(v, count: int) -> tuple:
    """Returns the length and the first items of a deque or of a class derived from it."""
    return collections.deque.__len__(v), [*_islice(collections.deque.__iter__(v), count)]


def is_view(kind: type) -> bool:
    return kind is _VIEWS[0] or kind is _VIEWS[1] or kind is _VIEWS[2]


def has_pairs(kind: type) -> bool:
    """Tells whether a class of views has keys and values."""
    return kind is _VIEWS[2]


def view_items(v, count: int) -> tuple:
    """Returns the length and the first items of a view of a dict: of items(), the keys and then the values."""
    held = next(each for each in _referents(v) if issubclass(type(each), dict))
    items: list = []
    if type(v) is not _VIEWS[1]:
        items += _islice(dict.keys(held), count)
    if type(v) is not _VIEWS[0]:
        items += _islice(dict.values(held), count)
    return dict.__len__(held), items


def is_exception(kind: type) -> bool:
    return any(base is BaseException for base in _mro_of(kind))


def error_text(v, limit: int, show) -> str:
    """Returns an exception with its arguments. show(value, limit) returns the text of one."""
    parts, left = [], limit
    for argument in _args_of(v):
        if left <= 0:
            parts.append("...")
            break
        parts.append(show(argument, left))
        left -= len(parts[-1]) + 2
    return f"{name_of(type(v))}({', '.join(parts)})"
