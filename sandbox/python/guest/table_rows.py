"""Reads rows of a table for people: pages of them, in an order and with conditions, and what is known of a column.

A table is a DataFrame, a Series, an array, or a list of dicts. The code of numpy and pandas runs, and that of no class
of the user's: its values are previews.
"""

import array
import builtins
import datetime
import decimal
import math
import sys
import typing
import weakref

import json_values
import lookup
import tables
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_COLUMNS = 2000
MAX_CELLS = 40_000  # of a page
MAX_PAGE_BYTES = 700_000  # of a page; the supervisor takes 1 MiB
MAX_ROWS = 1000  # of a page
MAX_CELL = 300  # characters of a cell on a page; a longer one is asked for alone
MAX_WHOLE_CELL = 300_000
MAX_NAME = 200  # characters of the name of a column
MAX_NAMES_BYTES = 200_000
SHORT = 20  # characters of names and cells that would be too large together
MAX_NAMED_ROWS = 1000  # of a list, whose keys are its columns
MAX_KEPT_RUNS = 100  # whose tables are found again
MAX_DISTINCT = 100_000  # values that are told apart
TOP_VALUES = 5
CHUNK = 50_000  # values that are read at a time
MAX_OBJECTS = 500_000  # values of a column that are not numbers, which are all read at once
LAST = 0  # the number of a run's last value

_SAFE = 1 << 53  # larger integers lose digits in browsers
_NUMBERS = {int, float, decimal.Decimal}
_TIMES = {datetime.datetime, datetime.date, datetime.time}
_MISSING = {"NAType", "NaTType"}
_TEXT_TYPES = {"str", "string"}


class NoTable(Exception):
    """Raised for a table that is not there. Its argument is the reason."""


class Tables:
    """The tables of a session that its runs showed or returned."""

    def __init__(self) -> None:
        self._runs: dict = {}  # by execution: the tables by number, as functions that return them or None
        self._last: list = []  # the last value of the last run, which nothing else may hold
        self._order: tuple = ()  # the table, the view, and the numbers of its rows

    def forget(self) -> None:
        """Forgets what another run can change, before it begins."""
        self._last.clear()
        self._order = ()

    def keep(self, execution: str, shown: dict, last) -> None:
        """Keeps the tables of a run that has ended: those that it showed as long as its code keeps them, and its last
        value until the next run at least. shown has functions that return the former, by number."""
        found = dict(shown)
        if is_table(last):
            held = self._last = [last]
            reference = reference_to(last)
            found[LAST] = lambda: held[0] if held else reference()
        if execution and found:
            self._runs[execution] = found
            while len(self._runs) > MAX_KEPT_RUNS:
                del self._runs[next(iter(self._runs))]

    def find(self, execution: str, number: int):
        """Returns a table of a run."""
        find = self._runs.get(execution, {}).get(number)
        value = None if find is None else find()
        if value is None:
            raise NoTable("the session no longer has this table: the code has dropped it, or it ran too long ago")
        return value

    def answer(self, value, question: dict) -> dict:
        """Returns a sandbox.TablePage of a table."""
        table = _open(value)
        if table is None:
            raise NoTable(f"a value of type {values.type_name(value)} is not a table")
        if question.get("stats") is not None:
            return self._stats(table, value, question)
        chosen = question.get("column")
        rows = self._rows(table, value, question)
        start = max(int(question.get("start") or 0), 0)
        columns = range(min(table.width, MAX_COLUMNS)) if chosen is None else [_column(table, chosen)]
        count = max(1, min(int(question.get("count") or 100), MAX_ROWS, MAX_CELLS // max(len(columns), 1)))
        if rows is None:
            numbers = list(range(min(start, table.height), min(start + count, table.height)))
        else:
            numbers = [int(each) for each in rows[start : start + count]]
        page = _page(table, columns, numbers, MAX_WHOLE_CELL if question.get("whole") else MAX_CELL)
        if sum(map(_size, page[0] if page else [])) > MAX_PAGE_BYTES:
            page = _page(table, columns, numbers[:1], SHORT if chosen is None else MAX_WHOLE_CELL // 6)
        size = 0
        for n, row in enumerate(page):
            size += sum(map(_size, row))
            if size > MAX_PAGE_BYTES and n > 0:
                del page[n:]
                break
        del numbers[len(page) :]
        return {
            "columns": _columns(table, columns),
            "total_columns": table.width,
            "total": table.height,
            "matching": table.height if rows is None else len(rows),
            "start": start,
            "numbers": numbers,
            "rows": page,
        }

    def _rows(self, table, value, question: dict):
        """Returns the numbers of the rows that pass the filters, in order; None: all, as they are."""
        sort, filters = question.get("sort") or "", question.get("filters") or []
        if not sort and not filters:
            return None
        view = (sort, [(f["column"], f["op"], f["value"]) for f in filters])
        held = self._order
        if held and held[0] is value and held[1] == view:
            return held[2]
        numbers: typing.Any = range(table.height)
        for column, op, text in view[1]:
            numbers = _passing(table, _column(table, column), op, text, numbers)
        if sort:
            numbers = _sorted(table, _column(table, int(sort.lstrip("-"))), sort[0] == "-", numbers)
        self._order = value, view, numbers
        return numbers

    def _stats(self, table, value, question: dict) -> dict:
        c = _column(table, question["stats"])
        rows = self._rows(table, value, question)
        numbers = table.array(c)
        if numbers is not None:
            stats = _array_statistics(numbers if rows is None else numbers[sys.modules["numpy"].asarray(rows)])
        else:
            _require_few(table.height if rows is None else len(rows), "count")
            stats = statistics(table.values(c, None if rows is None else list(rows)))
        return {
            "columns": [table.column(c)],
            "total_columns": table.width,
            "total": table.height,
            "matching": table.height if rows is None else len(rows),
            "start": 0,
            "numbers": [],
            "rows": [],
            "stats": stats,
        }


def reference_to(value):
    """Returns a function that returns the value as long as something else keeps it."""
    try:
        return weakref.ref(value)
    except TypeError:  # a list
        return lambda: None


def is_table(value) -> bool:
    """Tells whether rows of a value can be read."""
    return _open(value) is not None


def _open(value):
    kind = type(value)
    name = tables.kind_of(kind)
    if name == "DataFrame":
        return _Frame(value)
    if name == "Series":
        return _Frame(value.to_frame())
    if name == "ndarray" and value.ndim in (1, 2) and value.dtype.names is None:
        return _Array(value)
    if issubclass(kind, list) and kind in values.LISTS and list.__len__(value) > 0:
        if {*map(type, list.__getitem__(value, slice(0, MAX_NAMED_ROWS)))} == {dict}:
            return _List(value)
    return None


def _page(table, columns, numbers: "list[int]", most: int) -> list:
    parts = [[cell(each, most) for each in table.values(c, numbers)] for c in columns]
    return [list(each) for each in zip(*parts)]


def _columns(table, columns) -> list:
    found = [table.column(c) for c in columns]
    if sum(len(json_values._dumps(each["name"])) for each in found) > MAX_NAMES_BYTES:
        for each in found:
            each["name"] = values.readable(each["name"], SHORT)
    return found


def _column(table, column) -> int:
    c = int(column)
    if not 0 <= c < table.width:
        raise NoTable(f"the table has {table.width} columns, and no column {c}")
    return c


class _Frame:
    """The columns of a frame behind those of its index, if that is more than the numbers of the rows."""

    def __init__(self, frame):
        index = frame.index
        plain = values.name_of(type(index)) == "RangeIndex" and index.start == 0 and index.step == 1
        self._frame, self._levels = frame, []
        if not (plain and index.name is None):
            self._levels = [index.get_level_values(n) for n in range(index.nlevels)]
        self.height, self.width = len(frame), frame.shape[1] + len(self._levels)

    def _part(self, c: int):
        return self._levels[c] if c < len(self._levels) else self._frame.iloc[:, c - len(self._levels)]

    def column(self, c: int) -> dict:
        part = self._part(c)
        is_index = c < len(self._levels)
        name = part.name if is_index else self._frame.columns[c - len(self._levels)]
        if name is None and is_index:
            name = "index" if len(self._levels) == 1 else f"level_{c}"
        text = values.readable(str(name) if type(name) in (str, int, tuple) else values.preview(name, 100), MAX_NAME)
        return {"name": text, "type": values.readable(str(part.dtype), 60), "kind": self._kind(part)}

    @staticmethod
    def _kind(part) -> str:
        letter = getattr(part.dtype, "kind", "O")
        if letter in "iufc":
            return "number"
        if letter in "mM":
            return "time"
        if letter == "b":
            return "bool"
        return _kind_of_values(part[:100].tolist()) if letter == "O" else "text"

    def values(self, c: int, numbers: "list[int] | None") -> list:
        part = self._part(c)
        found = (part if numbers is None else part.take(numbers)).tolist()
        if getattr(part.dtype, "kind", "") == "O" and str(part.dtype) in _TEXT_TYPES:
            return [None if type(v) is float else v for v in found]  # NaN is what the type has for NULL
        return found

    def array(self, c: int):
        """Returns the numbers of a column as an array, or None."""
        part = self._part(c)
        held = getattr(part, "to_numpy", None)
        if held is None or type(part.dtype).__module__.split(".")[0] != "numpy" or part.dtype.kind not in "iuf":
            return None
        return part.to_numpy()


class _Array:
    def __init__(self, array):
        self._array = array if array.ndim == 2 else array.reshape(-1, 1)
        self.height, self.width = self._array.shape

    def column(self, c: int) -> dict:
        kind = {"i": "number", "u": "number", "f": "number", "b": "bool", "M": "time", "m": "time"}
        return {"name": str(c), "type": str(self._array.dtype), "kind": kind.get(self._array.dtype.kind, "text")}

    def values(self, c: int, numbers: "list[int] | None") -> list:
        part = self._array[:, c]
        return (part if numbers is None else part[numbers]).tolist()

    def array(self, c: int):
        return self._array[:, c] if self._array.dtype.kind in "iuf" else None


class _List:
    def __init__(self, rows):
        self._rows = rows
        names: dict = {}
        for row in list.__getitem__(rows, slice(0, MAX_NAMED_ROWS)):
            for name in dict.keys(row):
                if type(name) is str:
                    names[name] = None
        self._names = [*names]
        self.height, self.width = list.__len__(rows), len(names)

    def column(self, c: int) -> dict:
        found = self.values(c, list(range(min(100, self.height))))
        kinds = {values.name_of(type(each)) for each in found if each is not None}
        kind = _kind_of_values(found)
        return {
            "name": values.readable(self._names[c], MAX_NAME),
            "type": kinds.pop() if len(kinds) == 1 else "",
            "kind": kind,
        }

    def values(self, c: int, numbers: "list[int] | None") -> list:
        rows = list.__iter__(self._rows) if numbers is None else (list.__getitem__(self._rows, n) for n in numbers)
        name = self._names[c]
        return [dict.get(row, name) if type(row) is dict and lookup.are_plain(row) else None for row in rows]

    def array(self, c: int):
        return None


def _kind_of_values(found: list) -> str:
    kinds = {type(each) for each in found} - {type(None)}
    kinds = {kind for kind in kinds if values.name_of(kind) not in _MISSING}
    if not kinds:
        return "text"
    if kinds <= _NUMBERS:
        return "number"
    if kinds == {bool}:
        return "bool"
    if kinds <= _TIMES or {values.name_of(kind) for kind in kinds} <= {"Timestamp", "Timedelta", "timedelta"}:
        return "time"
    return "json" if kinds & {dict, list} else "text"


def is_missing(v) -> bool:
    """Tells whether a value is none: NULL, or what pandas has for it. NaN is a value."""
    return v is None or values.name_of(type(v)) in _MISSING and lookup.module_of(type(v)).startswith("pandas.")


def cell(v, most: int):
    """Returns a value as JSON. What JSON has not is an object with one of the keys nan, cut (the beginning of a text
    with length characters) and text (a preview)."""
    kind = type(v)
    if v is None or kind is bool:
        return v
    if kind is int:
        return v if -_SAFE < v < _SAFE else _text(str(v) if values.printable(v) else values.preview(v, 100), most)
    if kind is float:
        return v if math.isfinite(v) else {"nan": repr(v)}
    if kind is str:
        return _text(values.escaped(v), most)
    if is_missing(v):
        return None
    if kind is decimal.Decimal:
        return str(v) if v.is_finite() else {"nan": str(v)}
    if kind in _TIMES or values.name_of(kind) == "Timestamp":
        return v.isoformat(" ") if kind is not datetime.date and kind is not datetime.time else v.isoformat()
    if kind in values.TEXTS:
        return str(v)
    if kind in (dict, list, tuple) or kind in values.DICTS or kind in values.LISTS:
        plain = json_values.plain(v, min(4 * most, MAX_WHOLE_CELL), most)[0]
        text = json_values._dumps(plain, separators=(",", ":"))
        return {"json": plain} if len(text) <= most else {"cut": text[:most], "length": len(text), "json": None}
    return {"text": values.preview(v, min(most, 4000))}


def _text(text: str, most: int):
    return text if len(text) <= most else {"cut": text[:most], "length": len(text)}


def _size(part) -> int:
    if type(part) is str:
        return 2 + (len(part) if part.isascii() else len(json_values._dumps(part)))
    return 12 if type(part) is not dict else len(json_values._dumps(part))


# -- order and conditions


def _require_few(rows: int, what: str) -> None:
    if rows > MAX_OBJECTS:
        raise NoTable(
            f"the column has too many values to {what} here: at most {MAX_OBJECTS:,}, unless they are numbers"
        )


def _key(v) -> tuple:
    """Returns a key that orders any values: missing ones last, then numbers, times and texts. It runs no user code."""
    kind = type(v)
    if kind is bool or kind is int:
        return 0, v
    if kind is float:
        return (0, v) if v == v else (3, 0)
    if kind is decimal.Decimal:
        return (0, v) if not v.is_nan() else (3, 0)
    if is_missing(v):
        return 4, 0
    if kind is str:
        return 2, v
    return 1, str(cell(v, 100))


def _sorted(table, c: int, descending: bool, numbers):
    numpy = sys.modules.get("numpy")
    column = table.array(c)
    if column is not None and numpy is not None:
        chosen = numpy.asarray(numbers)
        part = column[chosen]
        if descending:
            part = -part if part.dtype.kind == "f" else ~part
        return chosen[numpy.argsort(part, kind="stable")]  # NaN is last
    _require_few(len(numbers), "sort")
    wanted = list(numbers)
    keys = [_key(v) for v in table.values(c, None if len(wanted) == table.height else wanted)]
    there = [n for n in range(len(keys)) if keys[n][0] < 3]
    rest = [n for n in range(len(keys)) if keys[n][0] >= 3]
    there.sort(key=keys.__getitem__, reverse=descending)
    return [wanted[n] for n in there + rest]


def _passing(table, c: int, op: str, text: str, numbers):
    """Returns the numbers of the rows that pass, in little memory: the session's may be scarce."""
    test = condition(op, text)
    out = array.array("q")
    for start in range(0, len(numbers), CHUNK):
        chunk = list(numbers[start : start + CHUNK])
        out.extend(n for n, v in zip(chunk, table.values(c, chunk)) if test(v))
    return out


def condition(op: str, text: str):
    """Returns a function that tells whether a value passes."""
    if op in ("null", "notnull"):
        return lambda v: is_missing(v) == (op == "null")
    number = _number(text)
    if op == "contains":
        low = text.lower()
        return lambda v: not is_missing(v) and low in shown(v).lower()
    if op in ("eq", "ne"):

        def equal(v):
            if number is not None and type(v) in _NUMBERS:
                return v == number
            return not is_missing(v) and shown(v) == text

        return equal if op == "eq" else lambda v: not is_missing(v) and not equal(v)

    def compares(v):
        if number is not None and type(v) in _NUMBERS:
            one, other = v, number
        elif is_missing(v) or type(v) in _NUMBERS or type(v) is bool:
            return False
        else:
            one, other = shown(v), text
        return (
            one < other if op == "lt" else one <= other if op == "le" else one > other if op == "gt" else one >= other
        )

    return compares


def _number(text: str):
    try:
        number = decimal.Decimal(text.replace(",", "").replace("_", ""))
    except decimal.InvalidOperation:
        return None
    if not number.is_finite():
        return None
    return int(number) if number == number.to_integral_value() and abs(number) < _SAFE else float(number)


def shown(v) -> str:
    """Returns the text of a value, as the page has it."""
    part = cell(v, MAX_WHOLE_CELL)
    if type(part) is str:
        return part
    if type(part) is dict:
        return str(next(iter(part.values()))) if "json" not in part else json_values._dumps(part["json"])
    return json_values._dumps(part)


# -- statistics


def statistics(found: list) -> dict:
    """Returns what is known of the values of a column."""
    present = [v for v in found if not is_missing(v)]
    out: dict = {"count": len(found), "missing": len(found) - len(present)}
    kinds = {*map(type, present)}
    numbers = [v for v in present if type(v) in _NUMBERS]
    nan = sum(1 for v in numbers if v != v)
    if nan:
        out["nan"] = nan
    empty = sum(1 for v in present if type(v) is str and not v)
    if empty:
        out["empty"] = empty
    counts: dict = {}
    for v in present:
        if type(v) is float and v != v:
            continue
        key = v if type(v) in (int, str, bool, float) else shown(v)
        counts[key] = counts.get(key, 0) + 1
        if len(counts) > MAX_DISTINCT:
            break
    out["distinct"] = min(len(counts), MAX_DISTINCT)
    if len(counts) > MAX_DISTINCT:
        out["distinct_more"] = True
    elif len(counts) < len(present):
        most = sorted(counts.items(), key=lambda pair: -pair[1])[:TOP_VALUES]
        out["top"] = [
            {"value": values.readable(key if type(key) is str else shown(key), 80), "count": n} for key, n in most
        ]
    if kinds and kinds <= _NUMBERS:
        finite = [v for v in numbers if v == v and math.isfinite(v)]
        if finite:
            out.update(min=cell(min(finite), 100), max=cell(max(finite), 100))
            ordered = sorted(map(float, finite))
            middle = len(ordered) // 2
            median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
            total = math.fsum(ordered)
            if math.isfinite(total) and math.isfinite(median):
                out.update(median=median, sum=total, mean=total / len(ordered))
            out["bins"] = _bins(ordered)
    elif present and kinds - {dict, list, tuple}:
        keys = [(_key(v), v) for v in present]
        low, high = min(keys, key=lambda pair: pair[0])[1], max(keys, key=lambda pair: pair[0])[1]
        out.update(min=values.readable(shown(low), 80), max=values.readable(shown(high), 80))
    return out


def _array_statistics(numbers) -> dict:
    """Returns what is known of an array of numbers."""
    numpy = sys.modules["numpy"]
    out: dict = {"count": len(numbers), "missing": 0}
    present = numbers
    if numbers.dtype.kind == "f":
        present = numbers[~numpy.isnan(numbers)]
        if len(present) < len(numbers):
            out["nan"] = len(numbers) - len(present)
    found, counts = numpy.unique(present, return_counts=True)
    out["distinct"] = len(found)
    if len(found) < len(present):
        most = numpy.argsort(-counts, kind="stable")[:TOP_VALUES]
        out["top"] = [{"value": shown(found[n].item()), "count": int(counts[n])} for n in most]
    finite = present[numpy.isfinite(present)]
    if len(finite):
        out.update(min=cell(finite.min().item(), 100), max=cell(finite.max().item(), 100))
        total, median = float(finite.sum(dtype="f8")), float(numpy.median(finite))
        if math.isfinite(total) and math.isfinite(median):
            out.update(median=median, sum=total, mean=total / len(finite))
        if math.isfinite(float(finite.max()) - float(finite.min())) and finite.max() > finite.min():
            out["bins"] = numpy.histogram(finite, bins=12)[0].tolist()
    return out


def _bins(ordered: list) -> list:
    """Returns how many numbers are in each of twelve equal parts of their range."""
    low, high = ordered[0], ordered[-1]
    width = (high - low) / 12
    if not width > 0 or not math.isfinite(width):
        return []
    out = [0] * 12
    for v in ordered:
        out[min(int((v - low) / width), 11)] += 1
    return out
