"""Views of values as tables: a DataFrame, a Series, an array, a list of dicts, a list or a dict of plain values.

A view has columns, and a column has facts: its type, missing values, zeros, the smallest and the largest value.
"""

import itertools
import math
import typing

from fact_values import (
    MAX_COLUMNS,
    MAX_ITEMS,
    NUMBERS,
    are_scalars,
    class_name_of,
    class_of,
    classes_of,
    count,
    is_missing,
    is_scalar,
    may_be_missing,
    module,
    package_of,
    span,
)

MAX_CELLS = 10_000_000  # of an array or a DataFrame that is looked at
LIST_COST = 4  # of a value of a list, as multiple of a value of an array

_ACCESSORS = {
    "DataFrameGroupBy", "SeriesGroupBy", "_LocIndexer", "_iLocIndexer", "Rolling", "RollingGroupby",
    "DatetimeIndexResampler",
}  # fmt: skip


class Column:
    """The facts of one column, or of the values of a list. It looks for the costly ones when they are asked for."""

    __slots__ = ("values", "present", "n", "kind", "missing", "is_number", "is_time", "_distinct", "_found", "_zeros")

    def __init__(self, values) -> None:
        self.values = values
        self.is_time = False
        self._distinct: int | None = None
        self._found: tuple | None = None
        self._zeros: int | None = None
        pandas = module("pandas")
        if pandas is not None and isinstance(values, (pandas.Series, pandas.Index)):
            self._from_pandas(values)
        else:
            self._from_list(values)

    def _from_pandas(self, s) -> None:
        missing = s.isna()
        self.n, self.missing, self.kind = len(s), int(missing.sum()), str(s.dtype)
        self.present = s[~missing] if self.missing else s
        code = getattr(s.dtype, "kind", "O")
        self.is_number, self.is_time = code in "iuf" and len(self.present) > 0, code == "M" and len(self.present) > 0
        if self.kind == "object":
            classes = classes_of(self.present.array)
            self.kind = ", ".join(sorted(map(class_name_of, classes))) or self.kind
            if len(classes) != 1:
                self._found = None, None  # a comparison of values of several types means little

    def _from_list(self, values) -> None:
        present = [v for v in values if not is_missing(v)] if may_be_missing(values) else values
        self.n, self.missing, self.present = len(values), len(values) - len(present), present
        classes = classes_of(present)
        self.kind = values.kind if isinstance(values, _Typed) else ", ".join(sorted(map(class_name_of, classes)))
        if not are_scalars(present):
            self._found = None, None
            classes = classes_of([v for v in present if is_scalar(v)])
        self.is_number = bool(classes) and all(issubclass(each, NUMBERS) and each is not bool for each in classes)

    @property
    def low(self) -> typing.Any:
        """Returns the smallest value, or None."""
        return self._ends()[0]

    @property
    def high(self) -> typing.Any:
        """Returns the largest value, or None."""
        return self._ends()[1]

    @property
    def zeros(self) -> int:
        """Returns how many numbers are 0."""
        if self._zeros is None:
            present = self.present
            if not self.is_number:
                self._zeros = 0
            elif hasattr(present, "dtype"):
                self._zeros = int((present == 0).sum())
            else:
                self._zeros = (
                    present.count(0) if are_scalars(present) else [v for v in present if is_scalar(v)].count(0)
                )
        return self._zeros

    def _ends(self) -> tuple:
        if self._found is None:
            present = self.present
            try:
                if not len(present):
                    self._found = None, None
                elif not hasattr(present, "dtype"):
                    self._found = min(present), max(present)
                elif present.dtype.kind in "iufbmM" or self.kind in ("str", "string"):
                    self._found = present.min(), present.max()
                else:
                    values = list(present.unique())
                    self._found = min(values), max(values)
            except (TypeError, ArithmeticError):  # values of other types, or a signaling NaN
                self._found = None, None
        return self._found

    def distinct(self) -> int:
        """Returns how many different values there are."""
        if self._distinct is None:
            if hasattr(self.values, "nunique"):
                self._distinct = int(self.values.nunique())
            else:
                self._distinct = len({v for v in self.values if is_scalar(v) and not is_missing(v)})
        return self._distinct

    def text(self) -> str:
        """Describes the values."""
        parts = [self.kind or "no values"]
        if self.missing:
            parts.append(f"{self.missing} of {self.n} missing")
        if self.low is not None:
            parts.append(span(self.low, self.high))
        if self.zeros:
            parts.append(count(self.zeros, "zero"))
        return ", ".join(parts)


class _Typed(list):
    """The values of an array, with the name of its type."""

    def __init__(self, values, kind: str) -> None:
        super().__init__(values)
        self.kind = kind


class Table:
    """A value with rows: a DataFrame, a Series, an array, a list of dicts, a list or a dict of plain values."""

    def __init__(self, kind: str, n: int, columns: dict, index=None, shape=None, width: int = 1) -> None:
        self.kind, self.n, self.names, self.index, self.shape = kind, n, list(columns), index, shape
        self._raw, self._width = columns, width
        self._columns: dict = {}

    def column(self, name) -> Column:
        """Returns the facts of a column."""
        if name not in self._columns:
            self._columns[name] = Column(self._raw[name])
        return self._columns[name]

    def raw(self, name):
        """Returns the values of a column."""
        return self._raw[name]

    @property
    def cost(self) -> int:
        """Returns about how many values of an array a look at the table is worth."""
        cells = self.n * max(1, len(self.names)) if self.shape is None else math.prod(self.shape)
        return cells * (1 if self.index is not None or self.shape is not None else LIST_COST)

    def text(self) -> str:
        """Describes the table."""
        if self.kind == "DataFrame":
            return f"{count(self.n, 'row')} x {count(self._width, 'column')}" + self._missing_text()
        if self.kind == "records":
            return count(self.n, "row") + self._missing_text()
        is_flat = self.shape is None or len(self.shape) == 1
        size = count(self.n, "value") if is_flat else f"shape {self.shape}"
        return f"{size}: {self.column(self.names[0]).text()}"

    def _missing_text(self) -> str:
        """Returns how many values of the first columns are missing, as the rest of a text."""
        missing = [f"{name} {self.column(name).missing}" for name in self.names if self.column(name).missing]
        return "; missing values (NaN): " + ", ".join(missing[:4]) if missing else ""


def table_of(value) -> "Table | None":
    """Returns the view of a value as a table, or None if it has no rows that can be looked at."""
    kind = class_of(value)
    package = package_of(value)
    if kind is list or kind is tuple:
        return _table_of_list(value)
    if kind is dict:
        if not 0 < len(value) <= MAX_ITEMS or not are_scalars(value) or not are_scalars(value.values()):
            return None
        return Table("dict", len(value), {"": list(value.values())})
    if package == "numpy" and kind.__name__ == "ndarray":
        return _table_of_array(value)
    pandas = module("pandas")
    if package != "pandas" or pandas is None:
        return None
    if kind is pandas.DataFrame:
        return _table_of_frame(value)
    if kind is pandas.Series:
        if len(value) > MAX_CELLS or not is_plain(value):
            return None
        name = value.name if value.name is not None and is_scalar(value.name) else ""
        return Table("Series", len(value), {name: value}, _plain(value.index))
    if isinstance(value, pandas.Index) and not isinstance(value, pandas.MultiIndex):
        is_seen = len(value) <= MAX_CELLS and is_plain(value)
        return Table("Index", len(value), {"": value.to_series()}) if is_seen else None
    return _table_of_accessor(value, kind.__name__)


def is_plain(values) -> bool:
    """Tells whether pandas calls no code of the program when it compares values of a Series or an Index."""
    pandas = module("pandas")
    if isinstance(values, pandas.MultiIndex):
        return all(map(is_plain, values.levels))
    if not issubclass(type(values.dtype), module("numpy").dtype) and package_of(values.dtype) != "pandas":
        return False
    if isinstance(values.dtype, pandas.CategoricalDtype):
        return is_plain(values.dtype.categories)
    if values.dtype.kind != "O" or values.dtype != object:
        return True
    return len(values) <= MAX_ITEMS and are_scalars(values.array)


def _plain(values):
    return values if is_plain(values) else None


def _table_of_frame(frame) -> "Table | None":
    rows, width = frame.shape
    names = frame.columns
    if rows > MAX_CELLS or not is_plain(names):
        return None
    most = min(MAX_COLUMNS, max(1, MAX_CELLS // max(1, rows)))
    places = [n for n in range(min(width, most)) if names.is_unique or names.get_loc(names[n]) == n]
    columns = {names[n]: frame.iloc[:, n] for n in places}
    plain = {name: column for name, column in columns.items() if is_plain(column)}
    return Table("DataFrame", rows, plain, _plain(frame.index), width=width)


def _table_of_accessor(value, name: str) -> "Table | None":
    """Returns the view of what an object such as df.groupby("a"), s.str or df.loc is for."""
    if name in ("StringMethods", "DatetimeProperties", "TimedeltaProperties"):
        inner = getattr(value, "_orig", None)
        return table_of(getattr(value, "_parent", None) if inner is None else inner)
    if name not in _ACCESSORS:
        return None
    selected = getattr(value, "_selected_obj", None) if "GroupBy" in name else None  # some columns, or all
    made = table_of(value.obj if selected is None else selected)
    if made is not None and "Indexer" not in name:
        made.kind = "groups" if "GroupBy" in name else "windows"
    return made


def _table_of_list(value) -> "Table | None":
    if not 0 < len(value) <= MAX_ITEMS:
        return Table("list", 0, {"": []}) if class_of(value) is list and not value else None
    if type(value[0]) is dict:
        if not all(type(each) is dict for each in value):
            return None
        most = min(MAX_COLUMNS, max(1, MAX_ITEMS * 2 // len(value)))
        names = [n for n in itertools.islice(value[0], MAX_COLUMNS) if type(n) is str][:most]
        return Table("records", len(value), {n: [each.get(n) for each in value] for n in names})
    if is_scalar(value[0]) and are_scalars(value):
        return Table("list", len(value), {"": value})
    return None


def _table_of_array(value) -> "Table | None":
    pandas = module("pandas")
    if not 0 < value.size <= MAX_CELLS or not 1 <= value.ndim <= 4 or value.dtype.kind not in "iufbMmUO":
        return None
    flat = value.ravel() if value.flags.c_contiguous else value.flatten()
    if pandas is not None and value.dtype.kind in "iufbMm":
        column = pandas.Series(flat, copy=False)
    else:
        column = _Typed(flat[:MAX_ITEMS].tolist(), str(value.dtype))
    return Table("array", len(value), {"": column}, shape=value.shape)
