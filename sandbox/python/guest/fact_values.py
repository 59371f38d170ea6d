"""What values are, and what was seen of the values of one expression: kinds, missing values, ranges and changes.

Nothing here calls code of the program: it looks only into values of Python, numpy and pandas, and counts others.
"""

import abc
import ast
import collections
import datetime
import decimal
import fractions
import itertools
import sys
import types
import typing

import library_values
import rows

MAX_ITEMS = 200_000  # of a list or dict that are looked at
MAX_DISTINCT = 1000
MAX_TIMES = 10_000  # evaluations of an expression that are looked at
MAX_COLUMNS = 40
MAX_TEXT = 40  # characters of a value
MAX_BITS = 1000  # of an integer that is written in digits
MAX_LOOKED_AT = 20  # keys or items that stand for all of them
MAX_EXAMPLES = 3  # labels or keys that a fact names
MAX_REPLACED_VALUES = 4  # of a key

NUMBERS = (int, float, decimal.Decimal, fractions.Fraction)
TIMES = (datetime.date, datetime.datetime, datetime.time, datetime.timedelta)
SCALARS = (type(None), bool, int, float, complex, str, bytes, *NUMBERS, *TIMES)
CONTAINERS = (list, tuple, dict, set, frozenset)
DICTS = (dict, collections.defaultdict, collections.OrderedDict, collections.Counter)

_SCALAR_IDS, _CONTAINER_IDS = set(map(id, SCALARS)), set(map(id, CONTAINERS))
_MISSING_IDS = set(map(id, (type(None), float, decimal.Decimal)))
_KEPT_IDS, _DICT_IDS = set(map(id, CONTAINERS + DICTS)), set(map(id, DICTS))
_KEYS, _VALUES = (type(view) for view in ({1: 1}.keys(), {1: 1}.values()))
_PANDAS_SCALARS = {"Timestamp", "Timedelta", "NaTType", "NAType", "Period", "Interval"}
_packages: dict[int, tuple[type, str]] = {}  # classes of numpy and pandas by their IDs
class_name_of = type.__dict__["__name__"].__get__  # a metaclass may define another __name__


class _Opaque:
    """Stands for a value that is not looked at."""


OPAQUE = _Opaque()


def module(name: str) -> typing.Any:
    """Returns an imported module, or None."""
    return sys.modules.get(name)


def _is_plain_class(kind) -> bool:
    """Tells whether a class runs no code of the program if it is hashed or asked for its module."""
    return type(kind) is type or type(kind) is abc.ABCMeta


def class_of(value) -> type:
    """Returns the class of a value: list and DataFrame for the results of queries, which add only that code may await
    them."""
    kind = type(value)
    if kind is rows.Rows:
        return list
    return kind.__bases__[0] if any(kind is each for each in library_values.OWN_FRAMES) else kind


def class_name(value) -> str:
    """Returns the name of the class of a value."""
    return class_name_of(class_of(value))


def classes_of(values) -> list:
    """Returns the different classes of values."""
    return list(dict(zip(map(id, map(type, values)), map(type, values))).values())


def package_of(value) -> str:
    """Returns "numpy" or "pandas" if the package defines the class of a value, and "" for other classes."""
    kind = class_of(value)
    if id(kind) in _packages:
        return _packages[id(kind)][1]
    if not _is_plain_class(kind):
        return ""
    home = kind.__module__
    package = home.partition(".")[0] if type(home) is str else ""
    if package not in ("numpy", "pandas") or vars(sys.modules.get(home, typing)).get(kind.__name__) is not kind:
        return ""
    _packages[id(kind)] = kind, package
    return package


def is_scalar(value) -> bool:
    """Tells whether a value is a number, a text or a time of Python, numpy or pandas."""
    kind = type(value)
    if id(kind) in _SCALAR_IDS:  # a search by the class would call the hash of its metaclass
        return True
    package = package_of(value)
    if package == "numpy":
        numpy = module("numpy")
        return numpy is not None and issubclass(kind, numpy.generic)
    return package == "pandas" and kind.__name__ in _PANDAS_SCALARS


def are_scalars(values) -> bool:
    """Tells whether all values of a collection are scalars."""
    return set(map(id, map(type, values))) <= _SCALAR_IDS or all(map(is_scalar, values))


def is_container(value) -> bool:
    """Tells whether a value is a list, tuple, dict or set, and not of a class of the program."""
    return id(class_of(value)) in _CONTAINER_IDS


def is_dict(value) -> bool:
    """Tells whether a value is a dict of a class of Python."""
    return id(type(value)) in _DICT_IDS


def is_missing(value) -> bool:
    """Tells whether a value is None, NaN, NaT or NA."""
    kind = type(value)
    if value is None or kind is float:
        return value is None or value != value
    if id(kind) in _SCALAR_IDS:
        return kind is decimal.Decimal and value.is_nan()
    package = package_of(value)
    if package == "numpy":
        return is_scalar(value) and value.dtype.kind in "fMm" and bool(value != value)
    return package == "pandas" and kind.__name__ in ("NaTType", "NAType")


def is_plain_key(value) -> bool:
    """Tells whether a key of a dict has no code of the program: it is a scalar, or a tuple of scalars."""
    return is_scalar(value) or type(value) is tuple and all(map(is_plain_key, value))


def has_plain_keys(table: dict) -> bool:
    """Tells whether a search in a dict calls no code of the program, to judge by its first keys."""
    return all(map(is_plain_key, itertools.islice(table, MAX_LOOKED_AT)))


def known(value):
    """Returns a value that can be kept and looked at, or OPAQUE. An object of the program that is kept would live
    longer than it does without probes. The view of a dict's keys or values becomes a list."""
    kind = class_of(value)
    if (kind is _KEYS or kind is _VALUES) and len(value) <= MAX_DISTINCT:
        value, kind = list(value), list
    if is_scalar(value) or package_of(value) in ("numpy", "pandas") or kind is types.ModuleType:
        return value
    if id(kind) not in _KEPT_IDS:
        return OPAQUE
    if kind in (list, tuple) and any(known(each) is OPAQUE for each in value[:1]):
        return OPAQUE
    return value


def may_be_missing(values) -> bool:
    """Tells whether values need a look each, to find those that are missing."""
    return not set(map(id, map(type, values))) <= _SCALAR_IDS - _MISSING_IDS


def show(value) -> str:
    """Returns the text of a value without the code of its class."""
    if is_container(value):
        return _show_container(value)
    if not is_scalar(value):
        return f"<{class_name(value)}>"
    if package_of(value) == "numpy":
        value = value.item()
    bits = value.bit_length() if isinstance(value, int) else 0
    if bits > MAX_BITS or isinstance(value, fractions.Fraction) and value.numerator.bit_length() > MAX_BITS:
        return f"<{class_name(value)} of {bits or value.numerator.bit_length()} bits>"
    if isinstance(value, (str, bytes)):
        value = value[: MAX_TEXT + 1]
    text = repr(value) if isinstance(value, (str, bytes, float, int, complex)) or value is None else str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."


def _show_container(value) -> str:
    items = []
    each: typing.Any
    for each in itertools.islice(value.items() if type(value) is dict else value, 3):
        items.append(": ".join(map(_show_item, each)) if type(value) is dict else _show_item(each))
    if len(value) > 3:
        items.append("...")
    brackets = "[]" if class_of(value) is list else "()" if type(value) is tuple else "{}"
    return brackets[0] + ", ".join(items) + brackets[1]


def _show_item(value) -> str:
    return show(value) if is_scalar(value) else f"<{class_name(value)}>"


def span(low, high) -> str:
    """Returns the text of the smallest and the largest of some values."""
    ends = show(low), show(high)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def count(n: int, noun: str) -> str:
    """Returns "1 row" or "2 rows"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def numeric_text(value) -> bool:
    """Tells whether a value is a string that is a number."""
    if type(value) is not str or len(value) > MAX_TEXT or not value.strip():
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True


def constant(node: ast.expr):
    """Returns the value of a literal, and None for other expressions."""
    return node.value if isinstance(node, ast.Constant) else None


def family(value) -> "str | None":
    """Returns the name of the types whose values may be equal to this one, and None if that is not known."""
    kind = type(value)
    if value is None or kind is bool or not is_scalar(value):
        return None
    if issubclass(kind, (str, bytes)):
        return "str" if issubclass(kind, str) else "bytes"
    if package_of(value) == "numpy":
        return "number" if value.dtype.kind in "iuf" else None
    if issubclass(kind, NUMBERS):
        return "number"
    if issubclass(kind, datetime.datetime):
        return "datetime"
    return "date" if kind is datetime.date else None


def _short(value):
    """Returns a value that can be kept until the end of a run."""
    return value[: MAX_TEXT + 1] if type(value) in (str, bytes) else value


class Scalars:
    """What the values of an expression that ran often were."""

    __slots__ = ("n", "kinds", "missing", "zeros", "true", "low", "high", "first", "distinct")

    def __init__(self) -> None:
        self.n = self.missing = self.zeros = self.true = 0
        self.kinds: dict[str, int] = {}
        self.low = self.high = self.first = None
        self.distinct: set | None = set()

    def add(self, value) -> None:
        """Counts a value."""
        if type(value) is decimal.Decimal or type(self.low) is decimal.Decimal:
            with decimal.localcontext():  # it gets the flags of comparisons
                self._add(value)
        else:
            self._add(value)

    def _add(self, value) -> None:
        self.n += 1
        kind = type(value).__name__
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if self.n == 1:
            self.first = _short(value)
        if is_missing(value):
            self.missing += 1
            return
        if value:
            self.true += 1
        elif type(value) is not bool and value == 0:
            self.zeros += 1
        if type(value) in (str, bytes) and len(value) > MAX_TEXT:
            value, self.distinct = _short(value), None
        try:
            if self.distinct is not None:
                self.distinct.add(value)
                if len(self.distinct) > MAX_DISTINCT:
                    self.distinct = None
            if self.low is None or value < self.low:
                self.low = value
            if self.high is None or value > self.high:
                self.high = value
        except TypeError:
            pass

    def text(self) -> str:
        """Describes the values."""
        if self.n == 1:
            return show(self.first)
        values = f"{self.n} values" if self.n < MAX_TIMES else f"the first {self.n} values"
        parts = [f"{n} {kind}" if kind != "NoneType" else f"{n} None" for kind, n in self.kinds.items()]
        if self.missing > self.kinds.get("NoneType", 0):
            parts.append(f"{self.missing - self.kinds.get('NoneType', 0)} missing (NaN)")
        if self.low is not None:
            if len(self.kinds) == 1 and "bool" in self.kinds and 0 < self.true < self.n:
                parts = [f"{self.true} True", f"{self.n - self.true} False"]
            elif self.distinct == {self.low}:
                parts.append(("always " if not self.missing else "the others ") + show(self.low))
            elif len(self.kinds.keys() - {"NoneType"}) == 1:  # values of other types may not be between them
                parts.append(span(self.low, self.high))
        if self.zeros and self.zeros != self.n:
            parts.append(count(self.zeros, "zero"))
        return f"{values}: " + ", ".join(parts)


class Pairs:
    """What a scalar expression made of its input, over all evaluations."""

    __slots__ = ("n", "equal", "replaced", "falsy", "cut", "most_cut", "cut_pair", "first", "largest")

    def __init__(self) -> None:
        self.n = self.equal = self.cut = 0
        self.replaced: dict[str, int] = {}
        self.falsy: dict[str, int] = {}
        self.most_cut = 0.0
        # What the operation got and made, where the most was cut, first, and of the largest.
        self.cut_pair: tuple | None = None
        self.first: tuple | None = None
        self.largest: tuple | None = None

    def add(self, given, made) -> None:
        """Counts what the expression got and made."""
        if type(given) is decimal.Decimal or self.largest is not None and type(self.largest[0]) is decimal.Decimal:
            with decimal.localcontext():  # it gets the flags of comparisons
                self._add(given, made)
        else:
            self._add(given, made)

    def _add(self, given, made) -> None:
        self.n += 1
        if self.n > MAX_TIMES:
            return
        if given is made:
            self.equal += 1
            return
        if is_missing(given):
            if not is_missing(made):
                key = show(made)
                self.replaced[key] = self.replaced.get(key, 0) + 1
            return
        if type(given) in (int, float, str) and not given and type(made) is type(given) and made:
            key = f"{show(given)} -> {show(made)}"
            self.falsy[key] = self.falsy.get(key, 0) + 1
        try:
            if type(given) is type(made) and given == made:
                self.equal += 1
            elif type(made) is int and isinstance(given, (float, decimal.Decimal)) and 0 < abs(float(given) - made) < 1:
                self.cut += 1
                lost = abs(float(given) - made)
                if lost > self.most_cut:
                    self.most_cut, self.cut_pair = lost, (given, made)
            if self.first is None and given != made:
                self.first = (_short(given), _short(made))
            if type(given) is not str and (self.largest is None or given > self.largest[0]):
                self.largest = (_short(given), _short(made))
        except Exception:  # values that cannot be compared
            pass


class Strips:
    """Texts that lost more than the prefix or suffix which their strip names, since strip takes a set of characters."""

    def __init__(self, node: "ast.expr | None") -> None:
        function = node.func if isinstance(node, ast.Call) and len(node.args) == 1 else None
        name = function.attr if isinstance(function, ast.Attribute) else ""
        text = constant(node.args[0]) if isinstance(node, ast.Call) and name in ("strip", "lstrip", "rstrip") else None
        self.name, self.text = name, text if type(text) is str and len(text) > 1 and text.strip() else ""
        self.n = 0
        self.example = ("", "")

    def add(self, given, made) -> None:
        """Looks at a text before and after the strip."""
        if not self.text or type(given) is not str or type(made) is not str:
            return
        without = given if self.name == "rstrip" else given.removeprefix(self.text)
        without = without if self.name == "lstrip" else without.removesuffix(self.text)
        if len(made) < len(without) < len(given):
            self.n += 1
            self.example = self.example if self.n > 1 else (given, made)

    def note(self, probe: "Probe", label: str, n: int) -> None:
        """Notes what was lost, if something was. n is the number of texts."""
        if self.n:
            pair = " -> ".join(map(show, self.example))
            text = (
                f"{self.n} of {n} texts lost more than {show(self.text)}: {pair} ({self.name} removes these characters "
            )
            probe.note("strip", 84, f"{label}{text}in any order; removeprefix and removesuffix remove a text)")


class Probe:
    """One expression of the code, and what was seen of it."""

    __slots__ = ("number", "node", "kind", "code", "children", "n", "scalars", "last", "is_kept", "effects", "pairs",
                 "last_text", "context", "stores", "is_update", "missed", "keys", "overwritten", "others", "frame",
                 "has_parent", "replaced", "strips")  # fmt: skip

    def __init__(self, number: int, node: ast.expr, kind: str, code: str) -> None:
        self.number, self.node, self.kind, self.code = number, node, kind, code
        self.children: list[tuple[str, Probe]] = []  # the parts of the expression, with their roles
        self.n = self.missed = self.overwritten = 0
        self.stores: Probe | None = None  # the assignment that follows
        self.is_update = False  # of an assignment: it depends on what was there
        self.scalars: Scalars | None = None
        self.pairs: Pairs | None = None
        self.last: typing.Any = None  # or OPAQUE
        self.frame = 0  # the ID of the frame that evaluated the expression last
        self.is_kept = self.has_parent = False
        self.effects: dict[str, tuple[int, str]] = {}
        self.last_text = ""
        self.context: typing.Any = None
        self.strips = Strips(node)
        self.keys: set = set()
        self.replaced: dict[str, list[str]] = {}  # of an assignment: the values of a key, one after the other
        self.others: dict[str, int] = {}

    def replace(self, before, key, value) -> None:
        """Keeps the texts of a value of a dict and of the one that takes its place, for the first few keys."""
        name = show(key)
        if len(self.replaced) >= MAX_EXAMPLES and name not in self.replaced:
            return
        if is_scalar(before) and is_scalar(value) and show(before) != show(value):
            chain = self.replaced.setdefault(name, [])
            for text in (show(before), show(value)):
                if len(chain) < MAX_REPLACED_VALUES and chain[-1:] != [text]:
                    chain.append(text)

    def child(self, role: str) -> "Probe | None":
        """Returns the first part with a role."""
        for each, probe in self.children:
            if each == role:
                return probe
        return None

    def has(self, child: "Probe | None") -> bool:
        """Tells whether the last value of a part belongs to the last value of this expression. It does not after an
        exception, or if another call or task has evaluated the part meanwhile."""
        return child is not None and child.frame == self.frame

    def values_of(self, *roles: str) -> list:
        """Returns the values of the parts with one of some roles."""
        return [child.last for role, child in self.children if role in roles and self.has(child)]

    def note(self, kind: str, score: int, text: str) -> None:
        """Keeps the fact with the highest score of each kind."""
        known = self.effects.get(kind)
        if known is None or known[0] < score:
            self.effects[kind] = (score, text)
