"""Converts values to JSON for any reader.

A value that JSON can't represent becomes {"type", "repr"}. Dates become ISO 8601 strings. A Decimal becomes a number if
a float has its digits, else a string. A DataFrame becomes {"type", "repr", "columns", "dtypes", "shape", "head"}, a
dataclass or named tuple an object of its fields.

plain() does not fail for any value, and it is bounded in size, depth and time. It may call the value's own __repr__,
unless sharing.py finds that it would be too long.
"""

import builtins
import collections
import datetime
import decimal
import json
import math

import values

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_DEPTH = 32
MAX_BYTES = 10 << 20  # of one value as JSON
MAX_COLUMNS = 1000
ARRAY_BYTES, TABLE_BYTES = 500, 4000  # of MAX_BYTES that a text of numpy or pandas takes, for its time of 0.1 or 1 ms

_SMALL = 1 << 63  # such integers need no conversion

_dumps = json.dumps
_DATES = {datetime.datetime, datetime.date, datetime.time}


def plain(v, max_bytes: int = MAX_BYTES, max_items: int = values.MAX_ITEMS) -> "tuple[object, int]":
    """Returns v as a value that json.dumps accepts, and how many items (characters of a str) were left out."""
    if v is None or type(v) is int and -_SMALL < v < _SMALL:
        return v, 0
    maker = _Converter(max_items, max_bytes)
    try:
        out = maker.value(v, 0)
        if type(out) in (list, dict) and len(_dumps(out)) > 2 * max_bytes:
            return values.opaque(v), 1
        return out, maker.cut
    except KeyboardInterrupt:
        raise
    except BaseException:  # out of memory, a recursion, a container that another thread changes
        return {"type": values.name_of(type(v)), "repr": f"<{values.name_of(type(v))}>"}, 1


class _Converter:
    def __init__(self, items_left: int, bytes_left: int):
        self.items_left, self.bytes_left = items_left, bytes_left
        self.cut = 0
        self._in_progress: set = set()
        self._texts = values.Preview(4 * items_left, runs_code=True)

    def value(self, v, depth: int):
        kind = type(v)
        if v is None or kind is bool:
            return v
        if kind is int:
            self.bytes_left -= v.bit_length() >> 2
            return v if values.printable(v) else values.opaque(v)
        if kind is str:
            return self._text(v)
        if kind is float:
            return v if math.isfinite(v) else values.opaque(v)
        if depth >= MAX_DEPTH:
            self.bytes_left -= 1000  # there may be very many if values share their items
            return {"type": values.name_of(kind), "repr": values.readable(self._texts.show(v, 100), 100)}
        if issubclass(kind, dict):
            return self._container(v, depth, self._dict)
        if issubclass(kind, (list, tuple)):
            return self._container(v, depth, self._list)
        try:
            if kind is decimal.Decimal:
                return _decimal(v)
            if kind in _DATES:
                return v.isoformat()
            if kind in values.TEXTS:
                return str(v)
            if values.is_of_package(kind, "numpy", "pandas"):
                return self._array(v, values.name_of(kind), depth)
            if "__dataclass_fields__" in vars(kind):
                return self._container(v, depth, self._fields)
        except Exception:
            pass
        return self._opaque(v)

    def _opaque(self, v):
        text = values.escaped(self._texts.show(v, values.MAX_REPR))
        self.cut += max(len(text) - values.MAX_REPR, 0)
        out = {"type": values.name_of(type(v)), "repr": values.readable(text, values.MAX_REPR)}
        self.bytes_left -= len(out["repr"])
        return out

    def _text(self, v: str):
        if not values.encodable(v):
            return self._opaque(v)
        if len(v) > self.bytes_left:
            self.cut += len(v) - values.MAX_REPR
            return self._opaque(v)
        self.bytes_left -= len(v) if v.isascii() else len(_dumps(v))
        return v

    def _container(self, v, depth: int, build):
        if id(v) in self._in_progress:
            return {"type": values.name_of(type(v)), "repr": "<a cycle: it holds itself>"}
        self._in_progress.add(id(v))
        try:
            return build(v, depth)
        finally:
            self._in_progress.discard(id(v))

    def _is_full(self) -> bool:
        self.items_left -= 1
        self.bytes_left -= 8  # the least that an item takes
        return self.items_left < 0 or self.bytes_left < 0

    def _list(self, v, depth: int):
        kind = type(v)
        fields = getattr(kind, "_fields", None)
        if issubclass(kind, tuple) and type(fields) is tuple and len(fields) == tuple.__len__(v):
            return self._dict(dict(zip(fields, tuple.__iter__(v))), depth)
        base = list if issubclass(kind, list) else tuple
        out: list = []
        for item in base.__iter__(v):
            if self._is_full():
                self.cut += base.__len__(v) - len(out)
                break
            out.append(self.value(item, depth + 1))
        return out

    def _dict(self, v, depth: int):
        ordered = type(v) is collections.OrderedDict
        out: dict = {}
        size = dict.__len__(v)
        for key, item in v.items() if ordered else dict.items(v):
            name = _key(key)
            if name is None or name in out:  # a key that JSON does not have, or 1 next to "1"
                return self._opaque(v)
            self.bytes_left -= len(name)
            if self._is_full():
                self.cut += size - len(out)
                break
            out[name] = self.value(item, depth + 1)
        return out

    def _fields(self, v, depth: int):
        return self._dict({name: getattr(v, name) for name in vars(type(v))["__dataclass_fields__"]}, depth)

    def _array(self, v, name: str, depth: int):
        is_array, is_table = name == "ndarray", hasattr(v, "iloc") or hasattr(v, "get_loc")
        if is_array or is_table:
            self.bytes_left -= ARRAY_BYTES if is_array else TABLE_BYTES
            if self._texts.needs_preview(v):
                return self._opaque(v)
            out: dict = {"type": values.name_of(type(v)), "repr": values.readable(values.call_repr(v), values.MAX_REPR)}
        if is_array:
            flat = v.ravel()
            flat = flat[: self._shown_rows(len(flat))]
            out.update(dtype=str(v.dtype), shape=list(v.shape), head=self.value(flat.tolist(), depth + 1))
            return out
        if hasattr(v, "columns") and hasattr(v, "iloc"):
            return self._frame(v, depth, out)
        if is_table:
            return self._series(v, depth, out)
        if name == "Timestamp":
            return v.isoformat()
        if name == "datetime64":
            return self._opaque(v) if str(v) == "NaT" else str(v)
        item = getattr(v, "item", None)
        if item is not None and name != "timedelta64" and v.shape == ():
            converted = item()
            if type(converted) is not type(v):
                return self.value(converted, depth + 1)
        return self._opaque(v)

    def _shown_rows(self, size: int) -> int:
        """Returns how many of a table's rows a result has, and counts the others."""
        most, least = values.row_bounds()
        shown = size if size <= most else min(least, most)
        self.cut += size - shown
        return shown

    def _frame(self, v, depth: int, out: dict):
        columns = values.unique(values.escaped(str(c)) for c in v.columns[:MAX_COLUMNS])
        self.cut += len(v.columns) - len(columns)
        head = v.head(self._shown_rows(len(v))).iloc[:, :MAX_COLUMNS]
        dtypes = {c: values.escaped(str(d)) for c, d in zip(columns, v.dtypes)}
        out.update(columns=columns, dtypes=dtypes, shape=list(v.shape))
        out["index"] = self.value(head.index.tolist(), depth + 1)
        rows = [dict(zip(columns, row)) for row in head.itertuples(index=False, name=None)]
        out["head"] = self.value(rows, depth + 1)
        return out

    def _series(self, v, depth: int, out: dict):
        rows = self._shown_rows(len(v))
        head = v[:rows] if hasattr(v, "get_loc") else v.head(rows)
        name = v.name if v.name is None else values.escaped(str(v.name))
        out.update(name=name, dtype=values.escaped(str(v.dtype)), shape=list(v.shape))
        if hasattr(v, "iloc"):
            out["index"] = self.value(head.index.tolist(), depth + 1)
        out["head"] = self.value(head.tolist(), depth + 1)
        return out


def _decimal(v: decimal.Decimal):
    if not v.is_finite():
        return values.opaque(v)
    near = float(v)
    return near if math.isfinite(near) and decimal.Decimal(repr(near)) == v else str(v)


def _key(key) -> "str | None":
    """Returns the text of a key as json.dumps writes it, or None if it has none."""
    kind = type(key)
    if kind is str:
        return key if values.encodable(key) else None
    if kind is int:
        return str(key) if values.printable(key) else None
    if kind is bool or key is None or kind is float and math.isfinite(key):
        return _dumps(key)
    if kind in _DATES:
        return key.isoformat()
    if kind in values.TEXTS or kind is decimal.Decimal:
        return str(key)
    if values.is_of_package(kind, "numpy", "pandas"):
        if values.name_of(kind) == "Timestamp":
            return key.isoformat()
        converted = key.item() if hasattr(key, "item") else None
        return _key(converted) if type(converted) in (int, str, float, bool) else None
    return None
