"""Reads namespaces, classes and objects by name, without running user code.

User code can put any object as a name into a dict. A lookup compares the wanted name with a key that has the same hash,
and if the class of that key is the user's, the comparison is the user's code. So a name is a key whose class is exactly
str; these functions pass over all other keys.
"""

import builtins
import itertools
import types

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

_MISSING, _ONLY_STR = object(), {str}
_islice = itertools.islice
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: user code may have made the class, or changed it
_vars_of, _mro_of, _flags_of, _module_of = (
    vars(type)[name].__get__ for name in ("__dict__", "__mro__", "__flags__", "__module__")
)
_DICT_DESCRIPTORS = types.GetSetDescriptorType, types.MemberDescriptorType


def pairs(names) -> list:
    """Returns the names in a dict, or in the dict of a class, with their values."""
    found = names.items() if type(names) is types.MappingProxyType else dict.items(names)
    return [(name, value) for name, value in list(found) if type(name) is str]


def find(names, wanted: str, default=None):
    """Returns the value of a name."""
    found = names.items() if type(names) is types.MappingProxyType else dict.items(names)
    for name, value in list(found):
        if type(name) is str and name == wanted:
            return value
    return default


def are_plain(names) -> bool:
    """Tells whether all keys are names, so that a lookup runs no user code."""
    return {*map(type, list(names))} <= _ONLY_STR


def of_class(kind: type) -> list:
    """Returns the names in the dict of a class, with their values."""
    return pairs(_vars_of(kind))


def in_class(kind: type, wanted: str, default=None):
    """Returns the attribute of a class or of its base classes."""
    for base in _mro_of(kind):
        found = find(_vars_of(base), wanted, _MISSING)
        if found is not _MISSING:
            return found
    return default


def module_of(kind: type) -> str:
    """Returns the name of the module of a class, or ""."""
    if not _flags_of(kind) & _HEAP_TYPE:
        return _module_of(kind)
    module = find(_vars_of(kind), "__module__")
    return module if type(module) is str else ""


def own_attributes(value) -> dict:
    """Returns the __dict__ of an object or module; {} if it has none. It runs no property of that name."""
    for base in _mro_of(type(value)):
        found = find(_vars_of(base), "__dict__")
        if found is not None:
            if type(found) in _DICT_DESCRIPTORS and found.__objclass__ is base:
                held = found.__get__(value)
                return held if isinstance(held, dict) else {}
            return {}
    return {}


class Attributes:
    """Reads the attributes in __dict__ and __slots__ of instances of a class, without running its code.

    A call returns the number of attributes, and the first names and then their values, most_read of each.
    """

    __slots__ = ("dict_of", "members", "most_read")

    def __init__(self, kind: type, most_read: int):
        self.dict_of, self.members, self.most_read = None, [], most_read
        for base in _mro_of(kind):
            for name, member in of_class(base):
                # A descriptor of another class reads memory that objects of this one do not have.
                if type(member) not in _DICT_DESCRIPTORS or member.__objclass__ is not base:
                    continue
                if name == "__dict__":
                    self.dict_of = self.dict_of or member.__get__
                elif type(member) is types.MemberDescriptorType:
                    self.members.append((name, member))

    def __call__(self, v):
        held = self.dict_of(v) if self.dict_of else {}
        length = dict.__len__(held)
        found, items = [*_islice(dict.keys(held), self.most_read)], [*_islice(dict.values(held), self.most_read)]
        for name, member in self.members:
            try:
                item = member.__get__(v)
            except AttributeError:
                continue
            length += 1
            if len(found) < self.most_read:
                items.append(item)
                found.append(name)
        return length, found + items
