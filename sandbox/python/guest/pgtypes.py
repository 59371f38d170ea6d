"""Converts PostgreSQL's values to Python's, and Python's values to parameters."""

import builtins
import datetime
import decimal
import ipaddress
import json
import re
import uuid
from collections.abc import Callable

import values
from helpers import helper

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

UTC = datetime.UTC
_TOO_LARGE = 10**values.MAX_DIGITS
# the errors for values that Python cannot represent
_UNREPRESENTABLE = (ValueError, OverflowError, ArithmeticError, RecursionError)


@helper("database", signature='Range(lower=None, upper=None, bounds="[)", empty=False)')
class Range:
    """A PostgreSQL range, in rows and as a parameter: lower and upper (None for an open end), and bounds, for example
    "[)". The bounds of an empty range are ""."""

    __slots__ = ("lower", "upper", "bounds")
    __module__ = "builtins"

    def __init__(self, lower=None, upper=None, bounds="[)", empty=False):
        if bounds not in ("[)", "(]", "()", "[]", ""):
            raise ValueError(f"bounds are one of '[)', '(]', '()', '[]', not {bounds!r}")
        if empty or not bounds:
            lower, upper, bounds = None, None, ""
        self.lower, self.upper, self.bounds = lower, upper, bounds

    @property
    def isempty(self) -> bool:
        return not self.bounds

    @property
    def lower_inc(self) -> bool:
        return self.bounds[:1] == "[" and self.lower is not None

    @property
    def upper_inc(self) -> bool:
        return self.bounds[1:] == "]" and self.upper is not None

    def __contains__(self, x) -> bool:
        if not self.bounds:
            return False
        above = self.lower is None or self.lower < x or self.lower_inc and self.lower == x
        return above and (self.upper is None or x < self.upper or self.upper_inc and x == self.upper)

    def _key(self):
        return self.lower, self.upper, self.lower_inc, self.upper_inc, self.isempty

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, Range) else NotImplemented

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"Range({self.lower!r}, {self.upper!r}, {self.bounds!r})"

    def __str__(self):
        if not self.bounds:
            return "empty"
        ends = ("" if x is None else _quoted_end(x) for x in (self.lower, self.upper))
        return f"{self.bounds[0]}{','.join(ends)}{self.bounds[1]}"


def _quoted_end(end) -> str:
    text = end.isoformat() if isinstance(end, datetime.date) else str(end)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# -- values


def _timedelta(v):
    months, days, micros = v
    years, months = int(months / 12), months - 12 * int(months / 12)
    try:
        return datetime.timedelta(days=days + 30 * months + 365 * years, microseconds=micros)
    except OverflowError:
        return f"{years} years {months} mons {days} days {micros} microseconds"


def _timestamptz(v):
    return datetime.datetime.fromisoformat(v).astimezone(UTC)


def _time(v):
    if v[:2] == "24":
        raise ValueError  # some versions of Python read it as midnight
    return datetime.time.fromisoformat(v)


def _inet(v):
    return ipaddress.ip_interface(v) if "/" in v else ipaddress.ip_address(v)


# An element of a record, quoted or not; commas separate them.
_ELEMENT = re.compile(r'"((?:[^"\\]|""|\\.)*)"|([^,()"]*)')
_UNQUOTE = re.compile(r'\\(.)|"(")', re.S)


def _elements(text: str) -> tuple:
    """Returns the parts of (a,"b",) or, without its bounds, of a range. A part without text is None."""
    out, at = [], 0
    while True:
        found = _ELEMENT.match(text, at)
        if found is None:
            raise ValueError(text)
        quoted, bare = found.groups()
        out.append((bare or None) if quoted is None else _UNQUOTE.sub(lambda m: m[1] or m[2], quoted))
        at = found.end()
        if at == len(text):
            return tuple(out)
        if text[at] != ",":
            raise ValueError(text)
        at += 1


def _record(v):
    return _elements(v[1:-1]) if v != "()" else ()


def _ranges(convert_end: "Callable | None"):
    def read(v):
        if v == "empty":
            return Range(empty=True)
        lower, upper = (x if x is None or convert_end is None else convert_end(x) for x in _elements(v[1:-1]))
        return Range(lower, upper, v[0] + v[-1])

    return read


_RANGE = re.compile(r'empty|[\[(](?:"(?:[^"\\]|""|\\.)*"|[^"\])])*[\])]')


def _multiranges(convert_end: "Callable | None"):
    read = _ranges(convert_end)
    return lambda v: [read(each) for each in _RANGE.findall(v)]


_CONVERT: dict = {
    "int": int,  # of the ends of a range
    "decimal": decimal.Decimal,
    "date": datetime.date.fromisoformat,
    "time": _time,
    "timetz": _time,
    "timestamp": datetime.datetime.fromisoformat,
    "timestamptz": _timestamptz,
    "uuid": uuid.UUID,
    "json": json.loads,
    "timedelta": _timedelta,
    "inet": _inet,
    "cidr": ipaddress.ip_network,
    "record": _record,
}


def column(description: dict, data: list, nulls: bool) -> list:
    """Converts the plain values of a column. nulls says whether some of them may be None."""
    kind = description["kind"]
    convert: Callable | None
    if kind == "range":
        convert = _ranges(_CONVERT.get(description["of"]))
    elif kind == "multirange":
        convert = _multiranges(_CONVERT.get(description["of"]))
    else:
        convert = _CONVERT.get(kind) if kind != "int" else None
    if convert is None:
        return data
    if description["array"]:
        return [_array(convert, v, kind == "timedelta") for v in data]
    try:
        return [None if v is None else convert(v) for v in data] if nulls else list(map(convert, data))
    except _UNREPRESENTABLE:
        return [_convert_one(convert, v) for v in data]


def _convert_one(convert, v):
    try:
        return None if v is None else convert(v)
    except _UNREPRESENTABLE:
        return v


def _array(convert, v, interval: bool):
    # An interval is itself a list of three integers.
    if isinstance(v, (list, tuple)) and not (interval and len(v) == 3 and all(type(x) is int for x in v)):
        return [_array(convert, x, interval) for x in v]
    return _convert_one(convert, v)


# -- parameters


def parameter(v) -> "tuple[object, str]":
    """Returns a parameter as JSON and, if PostgreSQL must not guess the type, its type. For a list it is the type of
    the elements."""
    kind = type(v)
    if v is None or kind in (bool, str):
        return v, ""
    if isinstance(v, int):
        v = int(v)
        if not -_TOO_LARGE < v < _TOO_LARGE:
            raise ValueError(f"an integer has more than {values.MAX_DIGITS} digits: pass it as a decimal.Decimal")
        return v, ""
    if isinstance(v, float):
        v = float(v)
        return (v, "") if v - v == 0 else ("NaN" if v != v else "Infinity" if v > 0 else "-Infinity", "float8")
    if isinstance(v, (list, tuple, set, frozenset)):
        return _list(v)
    if isinstance(v, dict):
        return {str(k): parameter(x)[0] for k, x in v.items()}, ""
    if isinstance(v, str):
        return str.__str__(v), ""
    if kind.__name__ in ("NaTType", "NAType"):
        return None, ""
    if isinstance(v, datetime.datetime):
        return v.isoformat(), "timestamptz" if v.tzinfo else "timestamp"
    if isinstance(v, datetime.date):
        return v.isoformat(), "date"
    if isinstance(v, datetime.time):
        return v.isoformat(), "timetz" if v.tzinfo else "time"
    if isinstance(v, datetime.timedelta):
        return f"{v.days} days {v.seconds} seconds {v.microseconds} microseconds", "interval"
    if isinstance(v, decimal.Decimal):
        return str(v), "numeric"
    if isinstance(v, uuid.UUID):
        return str(v), "uuid"
    if isinstance(v, (bytes, bytearray, memoryview)):
        return "\\x" + bytes(v).hex(), "bytea"
    if isinstance(v, (ipaddress.IPv4Network, ipaddress.IPv6Network)):
        return str(v), "cidr"
    if isinstance(v, (ipaddress.IPv4Address, ipaddress.IPv6Address)):  # with the interfaces, which are subclasses
        return str(v), "inet"
    if isinstance(v, Range):
        return str(v), _range_type(v)
    to_python = getattr(v, "tolist", None)
    if callable(to_python) and kind.__module__.partition(".")[0] in ("numpy", "pandas"):
        unit = str(v.dtype)
        if (
            unit.startswith(("datetime64", "timedelta64"))
            and kind.__module__.startswith("numpy")
            and not unit.endswith("[D]")
        ):
            to_python = v.astype(unit.partition("[")[0] + "[us]").tolist  # tolist makes integers of nanoseconds
        return parameter(to_python())
    raise TypeError(
        f"a parameter of type {kind.__name__} has no PostgreSQL type: pass a str, number, date, list or dict"
    )


def _list(v) -> "tuple[object, str]":
    items, kinds = [], set()
    for x in v:
        item, kind = parameter(x)
        items.append(item)
        if item is not None and item != []:
            kinds.add("number" if type(item) in (int, float) else kind)
    if kinds & {"numeric", "float8"}:  # PostgreSQL converts plain numbers to these
        kinds.discard("number")
    kind = kinds.pop() if len(kinds) == 1 else ""
    return items, "" if kind == "number" else kind


def _range_type(v: Range) -> str:
    ends = [x for x in (v.lower, v.upper) if x is not None]
    if ends and all(isinstance(x, int) for x in ends):
        return "int4range" if all(-(2**31) <= x < 2**31 - 1 for x in ends) else "int8range"
    kinds = {parameter(x)[1] for x in ends}
    names = {"numeric": "numrange", "date": "daterange", "timestamp": "tsrange", "timestamptz": "tstzrange"}
    return names.get(kinds.pop(), "") if len(kinds) == 1 else ""


values.TEXTS |= {
    Range,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
}
