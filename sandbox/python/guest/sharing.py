"""Decides whether the repr of a value is much longer than the value is large.

A value that holds the same part twice, which holds the same part twice, and so on 60 times, has 60 parts, and its repr
writes 2**60. The reprs of collections, numpy, pandas and dataclasses have no limit of depth, so values.Preview shows
such a value instead. Only parts that a repr shows count: a plain object is shown by its address, and a large array by
its ends.
"""

import builtins
import collections
import fractions
import functools
import gc
import itertools
import operator
import types
from collections.abc import Iterable

import library_values
import lookup
import tables

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_PATHS = 10_000  # containers that a repr of shared parts may write; it takes some 50 us for each, if they are arrays
MAX_FOUND = 100_000  # containers that are looked at
MAX_ITEMS = 1_000_000  # items of them
MAX_LEVELS = 200  # of containers in containers; those that hold themselves have more
MAX_REPEATED = 8  # times that a part is written on average
MAX_WHOLE = 1000  # items of an array that are looked at; of a larger one, those at its ends
ENDS = 100  # items at each end of an axis: numpy and pandas show fewer, unless the user's settings ask for more
MAX_CLASSES = 1000  # whose readers are kept

_mro_of = vars(type)["__mro__"].__get__
_args_of = vars(BaseException)["args"].__get__
_islice, _referents = itertools.islice, gc.get_referents
_LEAVES = {int, str, float, bool, bytes, complex, type(None), type(...)}
_SEQUENCES: tuple = (list, tuple, set, frozenset, collections.deque)
_ORDERED: collections.OrderedDict = collections.OrderedDict()
# Classes written in C whose reprs show what their objects refer to.
_HOLDERS: tuple = (
    *(slice, functools.partial, types.MappingProxyType, types.MethodType, types.GenericAlias, types.UnionType),
    *map(type, ({}.keys(), {}.values(), {}.items(), _ORDERED.keys(), _ORDERED.values(), _ORDERED.items())),
)
# Other classes whose reprs show the attributes of their objects.
_RECORDS: tuple = (types.SimpleNamespace, collections.UserDict, collections.UserList, collections.ChainMap)
_readers: dict = {}  # by id of a class: the class, and the function that returns the parts of its objects or None
_MADE_REPRS = "__dataclass_fields__", "__attrs_attrs__"  # of classes whose __repr__ is made from their fields


def shares_parts(v) -> "tuple[bool, int]":
    """Tells whether the repr of v writes shared parts very often, parts in parts very deep, or the digits of a very
    large int. Also returns how many containers were looked at. It raises tables.Unreadable."""
    if _reader_of(type(v)) is None:
        return False, 0
    level: dict = {id(v): (v, 1)}  # the containers at a depth, by id, and how often a repr writes each
    found = paths = items = 0
    for _ in range(MAX_LEVELS):
        below: dict = {}
        for holder, times in level.values():
            reader = _reader_of(type(holder))
            if reader is None:
                continue
            read = list(_islice(reader(holder), MAX_ITEMS))
            found, paths, items = found + 1, paths + times, items + len(read)
            if found > MAX_FOUND or items >= MAX_ITEMS or paths > MAX_PATHS and paths > MAX_REPEATED * found:
                return True, found
            for part in read:
                if type(part) is int:
                    if part.bit_length() > library_values.MAX_BITS:
                        return True, found
                elif type(part) not in _LEAVES:
                    below[id(part)] = part, times + below.get(id(part), (None, 0))[1]
        if not below:
            return False, found
        level = below
    return True, found


def _reader_of(kind: type):
    """Returns the function that returns what the reprs of objects of a class show of their parts; None if no parts."""
    known = _readers.get(id(kind))
    if known is None or known[0] is not kind:
        if len(_readers) >= MAX_CLASSES:
            _readers.clear()
        known = _readers[id(kind)] = kind, _new_reader(kind)
    return known[1]


def _new_reader(kind: type):
    if issubclass(kind, dict):
        return _keys_and_values
    for base in _SEQUENCES:
        if issubclass(kind, base):
            return base.__iter__
    if any(kind is each for each in _HOLDERS):
        return _referents
    if kind is range:
        return operator.attrgetter("start", "stop", "step")
    if kind is fractions.Fraction:
        return operator.attrgetter("_numerator", "_denominator")
    bases = _mro_of(kind)
    if any(base is BaseException for base in bases):
        return _args_of
    table = next(filter(None, map(tables.kind_of, bases)), "")
    if table:
        return functools.partial(_parts_of_table, kind=table)
    if lookup.module_of(kind) == "numpy.dtypes":
        return _field_types
    if any(base is each for base in bases for each in _RECORDS) or any(
        lookup.in_class(kind, name) is not None for name in _MADE_REPRS
    ):
        return functools.partial(_attribute_values, lookup.Attributes(kind, MAX_ITEMS))
    return None


def _keys_and_values(v) -> Iterable:
    return itertools.chain(dict.keys(v), dict.values(v))


def _attribute_values(read: lookup.Attributes, v) -> list:
    _, held = read(v)
    return held[len(held) // 2 :]


def _field_types(v) -> list:
    return [field[0] for field in (v.fields or {}).values()]


def _parts_of_table(v, kind: str) -> list:
    held = tables.all_arrays(v, kind)
    tables.require_memory(held)
    shown: list = []
    for array in held:
        dtype = array.dtype
        if not dtype.hasobject:
            if dtype.kind == "V":
                shown.append(dtype)
            continue
        if array.size > MAX_WHOLE:
            for axis, size in enumerate(array.shape):
                if size > 2 * ENDS:
                    array = array.take([*range(ENDS), *range(size - ENDS, size)], axis)
        shown += array.ravel().tolist()
    return shown
