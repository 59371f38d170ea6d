"""Warns when pandas finds nothing because the types differ, such as a date column that is compared with texts.

pandas answers False for values that can never be equal: isin of dates and texts, == of a UUID and its text. The rows
of a database have such columns more often than files, whose values are texts. A warning comes only if nothing was
found and the values, converted to the type of the column, are in it, so it is never wrong and never about the data.
What is compared again is bounded, and values are read again only from containers whose reading runs no user code: the
iterator of a class of the user's may send a statement or take a minute.
"""

import builtins
import datetime
import decimal
import functools
import ipaddress
import itertools
import json
import operator
import sys
import types
import uuid
import warnings

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_VALUES = 1000  # of the values and of the column that are compared again
MAX_ITEMS = 100_000  # of the lists of a column, and of comparisons of values that have no hash
_USER_CODE = "<execution "  # the start of the file names of user code
_CONTAINERS: tuple = list, tuple, set, frozenset, dict, type({}.keys()), type({}.values())
_ADDRESSES = (
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    ipaddress.IPv4Interface,
    ipaddress.IPv6Interface,
)
# Types of a column's values: how a value of another type becomes one of them, and how the user writes that.
_CONVERSIONS = (
    (uuid.UUID, lambda value, _: uuid.UUID(value), "uuid.UUID(...), or the column with .astype(str)"),
    (datetime.datetime, lambda value, _: datetime.datetime.fromisoformat(value), "pd.Timestamp(...)"),
    (datetime.date, lambda value, _: datetime.date.fromisoformat(value), "datetime.date.fromisoformat(...)"),
    (datetime.time, lambda value, _: datetime.time.fromisoformat(value), "datetime.time.fromisoformat(...)"),
    (decimal.Decimal, lambda value, _: decimal.Decimal(str(value)), "decimal.Decimal('...')"),
    (_ADDRESSES, lambda value, like: type(like)(value), "the ipaddress module, or the column with .astype(str)"),
    ((dict, list), lambda value, _: json.loads(value), "json.loads(...)"),
)
_LISTS = "each value of the column is a list: use .explode(), or .map(lambda values: ... in values)"
_PADDED = "char(n) values end in spaces: convert the column with .str.rstrip()"


def provide(pandas) -> None:
    """Makes the methods of pandas warn. It has no effect the second time."""
    series, frame = pandas.Series, pandas.DataFrame
    if getattr(series.isin, "warns", False):
        return
    for name, check in (("isin", _check_isin), ("map", _check_map), ("_cmp_method", _check_comparison)):
        _wrap(series, name, check)
    _wrap(frame, "merge", _check_merge)
    _wrap(pandas, "merge", _check_merge)


def _wrap(owner, name: str, check) -> None:
    method = getattr(owner, name, None)
    if method is None:
        return

    @functools.wraps(method)
    def wrapped(*args, **options):
        result = method(*args, **options)
        try:
            advice = check(result, *args, **options)
        except Exception:
            return result  # the values, which may be of the user's types, cannot be compared again
        if advice:
            warnings.warn(advice, UserWarning, stacklevel=_level())
        return result

    # pickle finds a function by its module and name. wraps takes those of the module that defines the method.
    if isinstance(owner, types.ModuleType):
        wrapped.__module__, wrapped.__qualname__ = owner.__name__, name
    else:
        wrapped.__module__, wrapped.__qualname__ = owner.__module__, f"{owner.__qualname__}.{name}"
    wrapped.warns = True  # type: ignore[attr-defined]
    setattr(owner, name, wrapped)


def _level() -> int:
    """Returns the stack level of the innermost frame of user code, seen from the caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and not frame.f_code.co_filename.startswith(_USER_CODE):
        frame, level = frame.f_back, level + 1
    return level


def _check_isin(result, column, values=None) -> str:
    if result.any():
        return ""
    return _advice(column, values, "isin")


def _check_map(result, column, arg=None, *_args, **_options) -> str:
    if not isinstance(arg, dict) or not result.isna().all():
        return ""
    return _advice(column, arg, "map")


def _check_comparison(result, column, other, op) -> str:
    if op not in (operator.eq, operator.ne):
        return ""
    if not isinstance(other, (str, bytes)) and hasattr(other, "__len__") or column.dtype.kind in "biufc":
        return ""
    found = result if op is operator.eq else ~result
    return "" if found.any() else _advice(column, [other], "==" if op is operator.eq else "!=")


def _check_merge(result, left, right=None, *args, **options) -> str:
    options.update(zip(("how", "on", "left_on", "right_on", "left_index", "right_index"), args))
    if len(result) or not len(left) or not len(right) or options.get("left_index") or options.get("right_index"):
        return ""
    names = options.get("on") or [name for name in left.columns if name in right.columns]
    pairs = [names if options.get(side) is None else options[side] for side in ("left_on", "right_on")]
    ours, theirs = ([each] if isinstance(each, str) else list(each) for each in pairs)
    for mine, other in zip(ours, theirs):
        advice = _advice(left[mine], right[other], "merge") or _advice(right[other], left[mine], "merge")
        if advice:
            return advice
    return ""


def _advice(column, values, operation: str) -> str:
    """Returns a warning if the values, which are not in the column, are there after a conversion, or ""."""
    column = column.dropna().head(MAX_VALUES)
    given = [value for value in _first(values) if value is not None]
    if not len(column) or not given:
        return ""
    first = column.iloc[0]
    if column.dtype.kind == "M":
        conversion = _moment(column, given)
    elif column.dtype.kind == "m":
        durations = [sys.modules["pandas"].Timedelta(value) for value in given]
        conversion = "" if set(column).isdisjoint(durations) else "convert the values with pd.to_timedelta(...)"
    else:
        conversion = _conversion(column, given, first)
    if not conversion:
        return ""
    kind = column.dtype if column.dtype.kind in "mM" else type(first).__name__
    return f"{operation} finds nothing: the column has {kind}, the value {type(given[0]).__name__}: {conversion}"


def _first(values) -> list:
    """Returns the first items of a container, without the user's code; nothing if it is of another class."""
    pandas, numpy = sys.modules["pandas"], sys.modules["numpy"]
    arrays = pandas.Series, pandas.Index, numpy.ndarray, pandas.api.extensions.ExtensionArray
    for kind in (*_CONTAINERS, *arrays):  # also a class of the user's that inherits from one, but not by its iterator
        if isinstance(values, kind):
            return list(itertools.islice(kind.__iter__(values), MAX_VALUES))
    return []


def _share(these: list, those: list) -> bool:
    """Tells whether a value is in both lists."""
    try:
        return not set(these).isdisjoint(those)
    except TypeError:  # they have no hash
        pairs = itertools.islice(itertools.product(these, those), MAX_ITEMS)
        return any(this == that for this, that in pairs)


def _moment(column, given: list) -> str:
    """Returns how to compare a column of datetime64 with the values, or ""."""
    pandas = sys.modules["pandas"]
    zone = column.dt.tz
    moments = [pandas.Timestamp(value) for value in given]
    if zone is not None:
        moments = [each.tz_localize(zone) if each.tzinfo is None else each for each in moments]
    elif any(each.tzinfo is not None for each in moments):
        return ""
    written = "pd.to_datetime(...)" if zone is None else f"pd.to_datetime(..., utc={str(zone) == 'UTC'})"
    if not set(column).isdisjoint(moments):
        return f"convert the values with {written}"
    if not set(column.dt.normalize()).isdisjoint(moments):
        return "its values have a time of day: compare .dt.normalize(), and convert the values with " + written
    return ""


def _conversion(column, given: list, first) -> str:
    """Returns how to compare a column of objects or texts with the values, or ""."""
    if isinstance(first, str):
        is_padded = first.endswith(" ") and not set(column.str.rstrip()).isdisjoint(given)
        return _PADDED if is_padded else ""
    if isinstance(first, list):
        items = itertools.chain.from_iterable(each for each in column if type(each) is list)
        if _share(given, list(itertools.islice(items, MAX_ITEMS))):
            return _LISTS
    for kinds, convert, written in _CONVERSIONS:
        if not isinstance(first, kinds):
            continue
        converted = []
        for value in given:
            if not isinstance(value, type(first)):
                try:
                    converted.append(convert(value, first))
                except (ValueError, TypeError, ArithmeticError):
                    continue
        if _share(converted, list(column)):
            return f"convert the values with {written}"
        return ""
    return ""
