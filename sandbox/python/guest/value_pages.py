"""Reads pages of the parts of a value, for the debugger: its items, attributes, rows and columns.

The parts are read without running the code of the value's class. Each has a path, which leads to an expression.
"""

import builtins
import collections
import itertools
import keyword

import library_values
import lookup
import tables
import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_LABEL = 100  # characters of a label of a row


def length(value) -> int | None:
    """Returns the number of a value's items, or None."""
    shape = values.shape(value)
    if shape is not None:
        return shape[0] if shape else None
    for kind in (list, tuple, dict, set, frozenset, collections.deque):
        if issubclass(type(value), kind):
            return kind.__len__(value)
    if library_values.is_view(type(value)) or tables.kind_of(type(value)):
        return len(value)
    return None


_SEQUENCES: tuple = (list, tuple)
_LABELS = {str, bytes, int, float, bool, complex, type(None)}
_LITERALS = {str, bytes, int, bool, type(None)}


def columns(value, start: int, end: int) -> list:
    """Returns columns of a DataFrame as names, values and paths. A repeated name has _2, _3 ... appended."""
    out, repeated = [], value.columns.duplicated(keep=False)[start:end].tolist()
    names = values.unique(map(_label, value.columns[:end].tolist()))[start:]
    for i, label in enumerate(value.columns[start:end].tolist(), start):
        is_name = type(label) in (str, int) and not repeated[i - start]
        path = f"[{label!r}]" if is_name else f".iloc[:, {i}]"
        out.append((names[i - start], value.iloc[:, i], ("", path)))
    return out


def items(value, start: int, count: int) -> list:
    """Returns a page of the parts of a value, without running user code: their names, values and paths. The part's
    expression is that of the value between the two texts of its path."""
    kind = type(value)
    for base in _SEQUENCES:
        if issubclass(kind, base):
            page = base.__getitem__(value, slice(start, start + count))
            return [(f"[{i}]", item, ("", f"[{i}]")) for i, item in enumerate(page, start)]
    if issubclass(kind, collections.deque):
        page = list(itertools.islice(collections.deque.__iter__(value), start, start + count))
        return [(f"[{i}]", item, ("", f"[{i}]")) for i, item in enumerate(page, start)]
    if issubclass(kind, dict):
        pairs = itertools.islice(zip(dict.keys(value), dict.values(value)), start, start + count)
        return [(values.preview(key, 100), item, _key_path(key, i)) for i, (key, item) in enumerate(pairs, start)]
    table = tables.kind_of(kind)
    if table:
        return _rows(value, table, start, count)
    if issubclass(kind, (set, frozenset)) or library_values.is_view(kind):
        base = set if issubclass(kind, set) else frozenset
        listed = [*value] if library_values.is_view(kind) else base.__iter__(value)
        page = list(itertools.islice(listed, start, start + count))
        return [(f"[{i}]", item, ("[*", f"][{i}]")) for i, item in enumerate(page, start)]
    found = values.attributes(value) or lookup.pairs(lookup.own_attributes(value))
    return [(name, item, _attribute_path(name)) for name, item in found[start : start + count]]


def _key_path(key, i: int) -> tuple:
    return ("", f"[{key!r}]") if type(key) in _LITERALS else ("[*dict.values(", f")][{i}]")


def _attribute_path(name: str) -> tuple:
    return ("", f".{name}") if name.isidentifier() and not keyword.iskeyword(name) else ("getattr(", f", {name!r})")


def _rows(value, table: str, start: int, count: int) -> list:
    """Returns rows of a table, or elements of an array."""
    end = start + count
    if table == "DataFrame":
        rows = value.iloc[start:end, :50]
        names = values.unique(map(str, rows.columns))
        return [
            (_label(label), dict(zip(names, row)), ("", f".iloc[{i}]"))
            for i, (label, row) in enumerate(zip(rows.index, rows.itertuples(index=False, name=None)), start)
        ]
    if table == "Series":
        part = value.iloc[start:end]
        found = zip(list(part.index), part.tolist())
        return [(_label(label), item, ("", f".iloc[{i}]")) for i, (label, item) in enumerate(found, start)]
    part = value[start:end]
    return [(str(i), item, ("", f"[{i}]")) for i, item in enumerate(list(part), start)]


def _label(label) -> str:
    """Returns a label as its str, unless it holds other values, which it may share."""
    is_plain = library_values.leaf_reader(type(label)) is not None or type(label) in _LABELS
    return values.readable(str(label), MAX_LABEL) if is_plain else values.preview(label, MAX_LABEL)
