"""Builds a result while it arrives, batch by batch: a list of dicts, or a DataFrame. Each batch is freed after its use.

Package sandbox/protocol specifies the columns of a batch: a list of plain values, or a tuple of a form, the values as
bytes, and a byte for each value that is 1 for NULL.
"""

import builtins
import gc
import sys
from collections.abc import Callable

import library_values
import pgtypes
import unequal_types
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones


class Rows(list):
    """A list that a helper returns. Code may also await it, gather it or make a task of it: for asyncio it is a
    finished coroutine whose result is a plain list. truncated is True if the result had more rows or bytes than
    allowed."""

    __module__ = "builtins"  # the module of its type
    __hash__ = object.__hash__  # type: ignore[assignment]  # asyncio puts it into sets
    truncated = False

    def __await__(self):
        return list(self)
        yield

    def send(self, _value):
        raise StopIteration(list(self))

    def throw(self, error, value=None, trace=None):
        raise error

    def close(self):
        pass

    def __reduce_ex__(self, _protocol):  # copies and pickles are plain lists
        return list, (list(self),)


values.LISTS.add(Rows)


class _CollectionPaused:
    """Pauses garbage collection, which would repeatedly traverse rows that can't be garbage yet."""

    def __enter__(self):
        self._before = gc.isenabled()
        gc.disable()

    def __exit__(self, *_):
        if self._before:
            gc.enable()


def _plain_values(data) -> "tuple[list, bool]":
    """Returns the plain values of a column, and whether None may be among them."""
    if type(data) is list:
        return data, True
    form, raw, nulls = data
    out = raw.decode().split("\0") if form == "t" else memoryview(raw).cast(form).tolist()
    return ([None if null else v for v, null in zip(out, nulls)], True) if nulls else (out, False)


def _python_values(description: dict, data) -> list:
    return pgtypes.column(description, *_plain_values(data))


_LITERAL_NAMES = 15  # CPython makes a dict literal of more names item by item, which takes as long as dict()
_COMPILED_ROWS = 1000  # from here on, compiling takes less time than it saves


def _dicts(names: "list[str]", rows) -> "list[dict]":
    return [dict(zip(names, row)) for row in rows]


def _compiled_dicts(names: "list[str]") -> Callable:
    """Returns a function that makes dicts of rows as _dicts does, in about half the time for few names."""
    items = ", ".join(f"{name!r}: v{i}" for i, name in enumerate(names))
    variables = ", ".join(f"v{i}" for i in range(len(names)))
    code = compile(f"lambda names, rows: [{{{items}}} for {variables}, in rows]", __file__, "eval")
    return eval(code, {"__builtins__": {}})


class ListResult:
    """A result as a list of dicts. If columns have the same name, the second is called name_2."""

    form, exact = "", True

    def __init__(self):
        self.rows = Rows()

    def begin(self, columns: "list[dict]") -> None:
        self._columns = columns
        self._names = values.unique(column["name"] for column in columns)
        self._dicts = _dicts

    def take(self, count: int, data: list) -> None:
        with _CollectionPaused():
            columns = [_python_values(*each) for each in zip(self._columns, data)]
            if self._dicts is _dicts and count >= _COMPILED_ROWS and 0 < len(columns) <= _LITERAL_NAMES:
                self._dicts = _compiled_dicts(self._names)
            self.rows += self._dicts(self._names, zip(*columns)) if columns else [{} for _ in range(count)]


_awaitable_class: list = []  # the class, once pandas is imported


def _await_frame(frame):
    plain = __import__("pandas").DataFrame(frame)
    plain.attrs = frame.attrs
    return plain
    yield


def _awaitable_frame_class(pandas):
    if not _awaitable_class:
        body = {
            "__module__": "pandas",
            "__hash__": object.__hash__,
            "__await__": _await_frame,
            "__reduce_ex__": lambda self, _protocol: (pandas.DataFrame, (), self.__getstate__()),
        }
        _awaitable_class.append(type("DataFrame", (pandas.DataFrame,), body))
        library_values.OWN_FRAMES.append(_awaitable_class[0])
    return _awaitable_class[0]


class FrameResult:
    """A result as a DataFrame, built column by column. Code may await it like Rows, and gets a plain DataFrame.

    exact tells whether numeric columns are objects of Decimal, and not float64.
    """

    def __init__(self, exact: bool):
        self.exact = exact
        self._pandas = __import__("pandas")
        unequal_types.provide(self._pandas)
        self._texts = None  # the dtype of texts in Arrow's memory, or None
        self._count = 0
        if int(self._pandas.__version__.split(".")[0]) > 2:
            dtype = self._pandas.StringDtype(na_value=sys.modules["numpy"].nan)
            self._texts = dtype if dtype.storage == "pyarrow" else None
        self.form = "arrow" if self._texts else "frame"

    def begin(self, columns: "list[dict]") -> None:
        self._names = values.unique(column["name"] for column in columns)
        self._columns = [self._column(column) for column in columns]

    def _column(self, description: dict):
        if description["array"]:
            return _Objects(description)
        if description["kind"] in _DTYPES and not (self.exact and description["kind"] == "decimal"):
            return _Numbers(description)
        if description["kind"] in ("string", "text") and self._texts:
            return _Texts(self._texts)
        return _Objects(description)

    def take(self, count: int, data: list) -> None:
        with _CollectionPaused():
            self._columns = [column.add(self._count, each) for column, each in zip(self._columns, data)]
        self._count += count

    def frame(self, truncated: bool):
        series, self._columns = [], self._columns[::-1]
        while self._columns:
            series.append(self._columns.pop().series(self._pandas))
        index = None if series else self._pandas.RangeIndex(self._count)
        frame = _awaitable_frame_class(self._pandas)(
            dict(zip(self._names, series)), columns=self._names, index=index, copy=False
        )
        frame.attrs["truncated"] = truncated
        return frame


_DTYPES = {
    "int": "<i8",
    "bool": "?",
    "float": "<f8",
    "decimal": "<f8",
    "date": "<M8[s]",
    "timestamp": "<M8[us]",
    "timestamptz": "<M8[us]",
    "timedelta": "<m8[us]",
}


class _Numbers:
    """A column of numbers or times, in the memory that becomes its array."""

    def __init__(self, description: dict):
        self._description, self._kind = description, description["kind"]
        self._raw, self._nulls = bytearray(), bytearray()

    def add(self, before: int, data):
        if type(data) is list or data[0] == "t":  # a time is out of range
            return _Objects(self._description, self._objects()).add(before, data)
        _, raw, nulls = data
        self._raw += raw
        if nulls and self._kind in ("int", "bool"):  # the others have NaN and NaT
            self._nulls += bytes(before - len(self._nulls)) + nulls
        return self

    def _array(self):
        return sys.modules["numpy"].frombuffer(self._raw, dtype=_DTYPES[self._kind])

    def series(self, pandas):
        array = self._array()
        if self._nulls:
            self._nulls += bytes(len(array) - len(self._nulls))
            kind = pandas.arrays.IntegerArray if self._kind == "int" else pandas.arrays.BooleanArray
            return pandas.Series(kind(array, sys.modules["numpy"].frombuffer(self._nulls, dtype="?")))
        series = pandas.Series(array, copy=False)
        return series.dt.tz_localize(pgtypes.UTC) if self._kind == "timestamptz" else series

    def _objects(self) -> list:
        """Returns a column of times as db_query returns it."""
        return _times(self._kind, self._array())


def _times(kind: str, array) -> list:
    plain = array.astype("<M8[D]").tolist() if kind == "date" else array.tolist()
    return [v and v.replace(tzinfo=pgtypes.UTC) for v in plain] if kind == "timestamptz" else plain


class _Objects:
    """A column of Python objects."""

    def __init__(self, description: dict, objects: "list | None" = None):
        self._description, self._all = description, objects or []

    def add(self, before: int, data):
        kind = self._description["kind"]
        if type(data) is tuple and data[0] == "q" and kind != "int":
            self._all += _times(kind, sys.modules["numpy"].frombuffer(data[1], dtype=_DTYPES[kind]))
        else:
            self._all += _python_values(self._description, data)
        return self

    def series(self, pandas):
        text = (
            self._description["kind"] in ("string", "text")
            and not self._description["array"]
            and int(pandas.__version__.split(".")[0]) > 2
        )
        return pandas.Series(self._all, dtype="str" if text else object)


class _Texts:
    """A column of texts, in the memory that becomes Arrow's."""

    def __init__(self, dtype):
        self._dtype = dtype
        self._raw, self._lengths, self._nulls = bytearray(), bytearray(), bytearray()

    def add(self, before: int, data):
        _, raw, nulls, lengths = data
        self._raw += raw
        self._lengths += lengths
        if nulls:
            self._nulls += bytes(before - len(self._nulls)) + nulls
        return self

    def series(self, pandas):
        numpy, pyarrow = sys.modules["numpy"], sys.modules["pyarrow"]
        lengths = numpy.frombuffer(self._lengths, dtype="<i4")
        ends = numpy.zeros(len(lengths) + 1, dtype="<i8")
        numpy.cumsum(lengths, out=ends[1:])
        valid = None
        if self._nulls:
            self._nulls += bytes(len(lengths) - len(self._nulls))
            valid = pyarrow.py_buffer(numpy.packbits(numpy.frombuffer(self._nulls, dtype="u1") == 0, bitorder="little"))
        array = pyarrow.Array.from_buffers(
            pyarrow.large_string(), len(lengths), [valid, pyarrow.py_buffer(ends), pyarrow.py_buffer(self._raw)]
        )
        array.validate(full=True)  # a database in SQL_ASCII may send any bytes
        return pandas.Series(self._dtype.__from_arrow__(array))
