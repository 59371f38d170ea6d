"""Reads numpy arrays, and the series, indexes and frames of pandas, without running user code.

A table is read from the arrays that it holds: its shape, its types, how many values are missing, and its first rows.
Code of numpy and pandas runs, so only objects whose classes are exactly theirs are read.
"""

import abc
import builtins
import math
import types
import zlib
from typing import Any

import library_values
import lookup
import mapped_memory
from library_values import Raw, is_from, raw, raws

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_COLUMNS = 16
MAX_ROWS = 5  # of a frame that are read, unless the caller wants more
MAX_ITEMS = 16  # of an array, series or index that are read, unless the caller wants more of a series
MAX_TEXT = 240  # characters of the text of a frame that may be followed by another row
MAX_CELL = 60  # characters of a text in a table
MAX_DTYPES = 64  # types whose names are kept
MAX_COMPARED_BYTES = 4096  # of a table whose values are all compared; of larger ones, some are
MAX_COUNTED = 1 << 20  # values of a column in which missing ones are counted
MAX_COUNTED_OBJECTS = 1 << 15  # the same, if they are Python objects

_SAMPLES = 64
_LISTED = {
    *("Categorical", "Index", "RangeIndex", "MultiIndex", "CategoricalIndex", "IntervalIndex", "DatetimeIndex"),
    *("TimedeltaIndex", "PeriodIndex"),
}
_kinds: dict = {}  # by id of a class of tables, or of one written in C: the class, and what kind_of returns for it
_own_classes: dict = {}  # of the block managers and blocks of pandas, by id: is_from takes three times as long
_array_classes: list = []  # of numpy, once it is found: a search in a guest copies the pages of all names of numpy
_dtype_names: dict = {}  # of numpy's simple types, by id: the type and its name
_TICKS = {"<M8[s]": 1, "<M8[ms]": 1000, "<M8[us]": 10**6, "<M8[ns]": 10**9}  # of a second
_FEW_MOMENTS = 8
_FIRST_SECOND, _LAST = -62135596800, 253402300800  # of the years 1 to 9999
_SHORT = {"Timestamp", "Timedelta", "Period", "Interval"}  # shown as their str


class Unreadable(Exception):
    """Raised for a table that could not be read without a signal or user code. Its argument is the reason."""


class Table:
    """What is read of a table.

    columns has (label, type, missing values or None) for each; a series has one column, with its name. rows has the
    label and the cells of each row. Labels and cells are scalars or Raw. An array has rows of one cell and no columns.
    """

    __slots__ = ("name", "shape", "dtype", "columns", "rows")

    def __init__(self, name: str, shape: tuple, dtype: str = ""):
        self.name, self.shape, self.dtype = name, shape, dtype
        self.columns: list = []
        self.rows: list = []

    @property
    def is_whole(self) -> bool:
        """Tells whether all columns, rows and cells are read completely."""
        if len(self.rows) < (self.shape[0] if self.shape else 1) or self.name == "MultiIndex":
            return False
        if self.name == "DataFrame" and len(self.columns) < self.shape[1]:
            return False
        return not any(type(cell) is Raw and "..." in cell.text for _, cells in self.rows for cell in cells)


def kind_of(kind: type) -> str:
    """Returns the name of a class of tables: DataFrame, Series, ndarray or another; "" if it is none."""
    known = _kinds.get(id(kind))
    if known is not None and known[0] is kind:
        return known[1]
    found = _find_kind(kind)
    if found or library_values.is_static(kind) or is_from(kind, "pandas"):
        _kinds[id(kind)] = kind, found
    return found


def _find_kind(kind: type) -> str:
    name = library_values.name_of(kind)
    if name == "ndarray":
        return name if library_values.is_static(kind) and lookup.module_of(kind) == "numpy" else ""
    if any(kind is each for each in library_values.OWN_FRAMES):
        return "DataFrame"
    if name in ("DataFrame", "Series") or name in _LISTED:
        return name if is_from(kind, "pandas", name) else ""
    return ""


def read(v, kind: str, show, max_values: int = 0) -> Table:
    """Reads a table of a kind that kind_of has returned. show(value, limit) returns the text of another value.

    max_values is how many labels and cells may be read of a frame or series beyond the usual number of rows. The caller
    has called require_memory.
    """
    if kind == "DataFrame":
        return _frame(v, show, max_values)
    if kind == "Series":
        return _series(v, show, max_values)
    if kind == "ndarray":
        return _array(v, show)
    return _listed(v, kind, show)


def _frame(v, show, max_values: int) -> Table:
    manager = _manager(v)
    columns, index = manager.axes
    rows = max(MAX_ROWS, max_values // (1 + min(len(columns), MAX_COLUMNS)))
    table = Table("DataFrame", (len(index), len(columns)))
    counts: dict = {}
    cells = []
    for i, label in enumerate(_labels(columns, MAX_COLUMNS, show)):
        block, at = manager.blocks[manager.blknos[i]], manager.blklocs[i]
        if id(block) not in counts:
            counts[id(block)] = _missing(block.values)
        found = counts[id(block)]
        missing = found if found is None else found[at if len(found) > 1 else 0]
        table.columns.append((label, _dtype(block.values), missing))
        part = block.values
        part = part[at] if getattr(part, "ndim", 1) == 2 else part
        cells.append(_cells(part, rows, show))
    labels = _labels(index, rows, show)
    table.rows = [(label, [column[i] for column in cells]) for i, label in enumerate(labels)]
    return table


def _series(v, show, max_values: int) -> Table:
    manager = _manager(v)
    rows = max(MAX_ITEMS, max_values // 2)
    values = manager.blocks[0].values
    table = Table("Series", (len(manager.axes[0]),))
    name = object.__getattribute__(v, "_name")
    missing = _missing(values)
    table.columns = [(_cell(name, show), _dtype(values), missing if missing is None else missing[0])]
    table.rows = [
        (label, [cell]) for label, cell in zip(_labels(manager.axes[0], rows, show), _cells(values, rows, show))
    ]
    return table


def _array(v, show) -> Table:
    table = Table("ndarray", v.shape, library_values.dtype_text(v.dtype))
    if v.dtype.kind == "V":
        return table
    if v.ndim > 1:
        rows = [v[i].flat[: MAX_ITEMS + 1].tolist() for i in range(min(len(v), MAX_ITEMS))]
        cells: list = [raw(show(row[:MAX_ITEMS], MAX_CELL) + " ..." * (len(row) > MAX_ITEMS)) for row in rows]
    else:
        cells = _cells(v if v.ndim else v.flat[:1], MAX_ITEMS, show)
    table.rows = [(i, [cell]) for i, cell in enumerate(cells)]
    return table


def _listed(v, kind: str, show) -> Table:
    table = Table(kind, (len(v),), "" if kind == "MultiIndex" else _dtype(v))
    if kind == "Categorical":
        cells = _cells(v, MAX_ITEMS, show)
    else:
        cells = _labels(v, MAX_ITEMS, show)
    table.rows = [(i, [cell]) for i, cell in enumerate(cells)]
    return table


def _manager(v):
    return object.__getattribute__(v, "_mgr")


def _own_manager(v):
    """Returns the block manager of a frame or series. It raises Unreadable unless it and its blocks are of pandas."""
    manager = _manager(v)
    kind = type(manager)
    if _own_classes.get(id(kind)) is not kind and not _is_own(kind):
        raise Unreadable(f"its _mgr is a {library_values.name_of(kind)}, not the block manager of pandas")
    for block in manager.blocks:
        kind = type(block)
        if _own_classes.get(id(kind)) is not kind and not _is_own(kind):
            raise Unreadable(f"it has a block of the class {library_values.name_of(kind)}, not one of pandas")
    return manager


def _is_own(kind: type) -> bool:
    """Tells whether a class is one of pandas, and keeps it in _own_classes then."""
    if is_from(kind, "pandas"):
        _own_classes[id(kind)] = kind
        return True
    return False


def all_arrays(v, kind: str) -> list:
    """Returns the arrays that a table of a kind, or of a class derived from it, holds: those of its labels, too. It
    raises Unreadable."""
    if kind == "ndarray":
        return [v if library_values.is_static(type(v)) else vars(array_class())["view"](v, array_class())]
    if kind in ("DataFrame", "Series"):
        manager = _own_manager(v)
        parts = [*[block.values for block in manager.blocks], *manager.axes]
    elif kind in ("MultiIndex", "Categorical"):
        parts = list(v._levels) if kind == "MultiIndex" else [v.categories, v._ndarray]
    else:
        parts = [] if kind == "RangeIndex" else [v._data]
    held: list = []
    for part in parts:
        inner = kind_of(type(part))
        if inner == "ndarray":
            held.append(part)
        elif inner:
            held += all_arrays(part, inner)
        elif is_from(type(part), "pandas"):
            held += _held_arrays(part)
            problem = arrow_problem(getattr(part, "_pa_array", None))
            if problem:
                raise Unreadable(problem)
    return held


def arrow_problem(v) -> str:
    """Returns why the values of v, an array or a table of pyarrow, can't be read; "" if they can, or v is neither."""
    kind = type(v)
    if not is_from(kind, "pyarrow"):
        return ""
    name = library_values.name_of(kind)
    if name in ("Table", "RecordBatch"):
        return next(filter(None, map(arrow_problem, v.columns)), "")
    if name == "ChunkedArray":
        return next(filter(None, map(arrow_problem, v.iterchunks())), "")
    if name == "DictionaryArray":
        return mapped_memory.buffers_problem(v.buffers()) or arrow_problem(v.dictionary)
    return mapped_memory.buffers_problem(v.buffers()) if name.endswith("Array") else ""


def require_memory(held: list) -> None:
    """Raises Unreadable if one of these arrays can't be read."""
    for array in held:
        problem = mapped_memory.problem(array)
        if problem:
            raise Unreadable(problem)


def _held_arrays(values) -> list:
    """Returns the arrays that an extension array of pandas holds."""
    held = []
    for name in ("_ndarray", "_data", "_mask"):
        array = getattr(values, name, None)
        if array is not None and kind_of(type(array)) == "ndarray":
            held.append(array)
    return held


def _labels(index, count: int, show) -> list:
    """Returns the first labels of an index."""
    kind = library_values.name_of(type(index))
    if kind not in _LISTED or not is_from(type(index), "pandas", kind):
        return [raw("?")] * min(len(index), count)
    if kind == "RangeIndex":
        return list(index._range[:count])
    if kind == "MultiIndex":
        return [_cell(label, show) for label in index[:count].tolist()]
    return _cells(index._data, count, show)


def _cells(values, count: int, show) -> list:
    """Returns the first values of a column."""
    kind = type(values)
    if kind_of(kind) == "ndarray":
        part = values[:count]
        if part.dtype.kind in "mM":
            return raws(part.astype(str).tolist())
        items = part.tolist()
        if part.dtype.kind in "bfi" and part.dtype.itemsize <= 8:
            return items  # of Python's own types
        return [_cell(item, show) for item in items]
    if not _is_readable(values):
        return [raw("?")] * min(len(values), count)
    name = library_values.name_of(kind)
    if name == "DatetimeArray" and getattr(values, "tz", None) is None:
        part = values._ndarray[:count]
        texts = _moments(part)
        if texts is not None:
            return raws(texts)
    if name == "Categorical":
        categories = values.categories
        return [_cell(math.nan if code < 0 else categories[code], show) for code in values._ndarray[:count].tolist()]
    if name == "ArrowStringArray":  # its own iterator takes three times as long
        missing = values.dtype.na_value
        return [
            item
            if type(item) is str and len(item) <= MAX_CELL and item.isascii()
            else _cell(missing if item is None else item, show)
            for item in values._pa_array[:count].to_pylist()
        ]
    mask: Any = getattr(values, "_mask", None)
    if kind_of(type(mask)) == "ndarray":
        pairs = zip(values._data[:count].tolist(), mask[:count].tolist())
        return [raw("<NA>") if missing else _cell(item, show) for item, missing in pairs]
    return [_cell(item, show) for item in list(values[:count])]


def _moments(part) -> "list | None":
    """Returns the texts of times without a zone, as those of datetimes; None if they are too exact for that. Making a
    Timestamp of each takes ten times as long."""
    unit = part.dtype.str
    ticks = _TICKS.get(unit)
    if ticks and len(part) > _FEW_MOMENTS:
        numbers = part.view("i8")  # NaT is not a whole second, or before all years
        if not (numbers % ticks).any() and _FIRST_SECOND <= numbers.min() // ticks and numbers.max() // ticks < _LAST:
            # Whole seconds: a datetime of each takes five times as long.
            return "\n".join(part.astype("M8[s]").astype(str).tolist()).replace("T", " ").split("\n")
    rounded = part if unit == "<M8[us]" else part.astype("M8[us]")
    if rounded is part or ((rounded == part) | (part != part)).all():
        return ["NaT" if item is None else str(item) for item in rounded.tolist()]
    return None


def _cell(item, show):
    kind = type(item)
    if kind is float or kind is bool or item is None:
        return item
    if kind is int:
        return item if item.bit_length() < 64 else raw(show(item, MAX_CELL))
    if kind is str:
        return item if len(item) <= MAX_CELL and item.isascii() else raw(show(item, MAX_CELL))
    read = library_values.leaf_reader(kind)
    found = read(item) if read is not None else None
    if found is None or type(found) is str:
        return raw(show(item, MAX_CELL))
    return raw(str(item)) if type(found) is Raw and library_values.name_of(kind) in _SHORT else found


def _is_readable(values) -> bool:
    """Tells whether an extension array is one of pandas, with no time zone of the user."""
    kind = type(values)
    if not is_from(kind, "pandas"):
        return False
    return type(getattr(values, "tz", None)) in library_values.ZONES


def _dtype(values) -> str:
    kind = type(values)
    readable = kind_of(kind) or is_from(kind, "pandas")
    if readable == "ndarray" and (dtype := values.dtype).kind in "biufcmMO":
        known = _dtype_names.get(id(dtype))
        if known is None or known[0] is not dtype:
            if len(_dtype_names) > MAX_DTYPES:
                _dtype_names.clear()
            known = _dtype_names[id(dtype)] = dtype, str(dtype)
        return known[1]
    if readable and library_values.name_of(kind) == "DatetimeArray" and getattr(values, "tz", None) is None:
        return _dtype(values._ndarray)
    return str(values.dtype) if readable else library_values.name_of(kind)


def _missing(values) -> "list | None":
    """Counts the missing values in each row of an array of columns; None if that is unknown or would take long."""
    kind = type(values)
    if kind_of(kind) == "ndarray":
        letter = values.dtype.kind
        rows = values.shape[0] if values.ndim == 2 else 1
        if letter in "biuSV":
            return [0] * rows
        if values.size > (MAX_COUNTED_OBJECTS if letter in "OUT" else MAX_COUNTED):
            return None
        if letter in "fcmM":
            missing = values != values
            if rows == 1:  # sum takes five times as long
                return [missing.tobytes().count(1)]
        else:
            missing = lookup.find(vars(library_values._modules["pandas"]), "isna")(values)
        return missing.reshape(rows, -1).sum(axis=1).tolist()
    if not is_from(kind, "pandas"):
        return None
    held = getattr(values, "_pa_array", None)
    if held is not None:
        return [held.null_count]
    if len(values) > MAX_COUNTED:
        return None
    name, mask = library_values.name_of(kind), getattr(values, "_mask", None)
    if name == "Categorical":
        missing = values._ndarray < 0
    elif name in ("DatetimeArray", "TimedeltaArray"):
        missing = values._ndarray != values._ndarray
        if missing.ndim == 1 or len(missing) == 1:
            return [missing.tobytes().count(1)]
    else:
        missing = mask if kind_of(type(mask)) == "ndarray" else values.isna()
    return missing.reshape(len(missing) if missing.ndim == 2 else 1, -1).sum(axis=1).tolist()


# -- texts


def text(table: Table, show) -> str:
    """Returns a table in one line."""
    shape = "x".join(map(str, table.shape))
    if table.name == "DataFrame":
        columns = [f"{_plain(label, show)} {dtype}{_count(missing)}" for label, dtype, missing in table.columns]
        if len(columns) < table.shape[1]:
            columns.append("...")
        out = f"<DataFrame {shape}{': ' if columns else ''}{', '.join(columns)}"
        rows = table.rows[:MAX_ROWS]
        for _, cells in rows if columns else ():
            row = ", ".join(_shown(cell, show) for cell in cells)
            if len(out) + len(row) > MAX_TEXT:
                return out + " | ...>"
            out += " | " + row
        return out + (" | ...>" if columns and len(rows) < table.shape[0] else ">")
    head = [table.name]
    if table.columns:
        ((label, dtype, missing),) = table.columns
        head += [*([] if label is None else [_plain(label, show)]), dtype, shape + _count(missing)]
    else:
        head += [*([table.dtype] if table.dtype else []), *([shape] if shape else [])]
    cells = [_shown(row[0], show) for _, row in table.rows[:MAX_ITEMS]]
    if table.shape and len(cells) < table.shape[0]:
        cells.append("...")
    return f"<{' '.join(head)}{': ' if cells else ''}{', '.join(cells)}>"


def _count(missing) -> str:
    return f" ({missing} null)" if missing else ""


def _plain(label, show) -> str:
    return label if type(label) is str else _shown(label, show)


def _shown(item, show) -> str:
    kind = type(item)
    if kind is Raw:
        return item.text
    if kind is float or kind is int and item.bit_length() < 64:
        return repr(item)  # as show does, in a tenth of the time
    if kind is str and len(item) <= MAX_CELL and item.isascii() and item.isprintable():
        text = repr(item)
        if len(text) <= MAX_CELL + 2:
            return text
    return show(item, MAX_CELL + 2)


# -- comparison


def array_class() -> type:
    """Returns the class of numpy's arrays, or NoneType if user code has replaced it."""
    if not _array_classes:
        found = lookup.find(vars(library_values._modules["numpy"]), "ndarray")
        if kind_of(found) != "ndarray":
            return type(None)
        _array_classes.append(found)
    return _array_classes[0]


def classes(kind: type) -> tuple:
    """Returns the classes that the extension reads of a table of this class: that of arrays, and for a frame or series
    those of pandas' block managers and blocks, in tuples."""
    if kind_of(kind) == "ndarray":
        return (kind,)
    if kind_of(kind) not in ("DataFrame", "Series"):
        return (array_class(),)
    return array_class(), *map(_classes_in, ("pandas.core.internals.managers", "pandas.core.internals.blocks"))


def _classes_in(module: str) -> tuple:
    held = lookup.find(library_values._modules, module)
    found = [each for _, each in lookup.pairs(vars(held))] if type(held) is types.ModuleType else []
    return tuple(each for each in found if type(each) in (type, abc.ABCMeta) and is_from(each, "pandas"))


def arrays(v, kind: str) -> "tuple[list, list]":
    """Returns the numpy arrays that a table holds, and the identities of other parts that change with its values."""
    if kind == "ndarray":
        return [v], []
    if kind in ("DataFrame", "Series"):
        manager = _own_manager(v)
        parts, found = [block.values for block in manager.blocks], [*map(id, manager.axes), *map(id, manager.blocks)]
    else:
        parts, found = [v], []
    held: list = []
    for part in parts:
        if kind_of(type(part)) == "ndarray":
            held.append(part)
            continue
        found.append(id(part))
        held += _held_arrays(part)
        for name in ("_pa_array", "_dtype"):
            found.append(id(getattr(part, name, None)))
    return held, found


def token(v, kind: str) -> list:
    """Returns a list that differs when the table has changed, if the change is among the values that are compared."""
    held, found = arrays(v, kind)
    whole = covers(held)
    require_memory(held)
    for array in held:
        found += [array.dtype.str, array.shape]
        if whole:
            found.append(zlib.crc32(array.tobytes()))
        elif array.size:
            flat = array.flat
            found.append(zlib.crc32(flat[:_SAMPLES].tobytes()))
            found.append(zlib.crc32(flat[-_SAMPLES:].tobytes()))
            found.append(zlib.crc32(flat[:: max(1, array.size // _SAMPLES)][:_SAMPLES].tobytes()))
    return found


def covers(held: list) -> bool:
    """Tells whether all values in these arrays are compared."""
    return sum(array.nbytes for array in held) <= MAX_COMPARED_BYTES
