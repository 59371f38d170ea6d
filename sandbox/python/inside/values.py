"""Values as JSON that any reader can hold: bounded, never an error, and never
trusting the __repr__, __len__ or __iter__ of what user code made.

What JSON can't hold faithfully becomes {"type", "repr"}. Dates become ISO 8601
strings, a Decimal a number where a float holds it exactly and else its digits as a
string, a DataFrame {"type", "repr", "columns", "dtypes", "shape", "head"}.
"""

import datetime
import decimal
import json
import math
import uuid

MAX_DEPTH = 32
MAX_ITEMS = 200_000  # of one result, over all its containers
MAX_REPR = 1000  # characters
HEAD_ROWS = 10

_dumps = json.dumps
_SIMPLE = (int, str, float, bool, type(None))


class Plain:
    """Turns values into what json.dumps takes; cut counts the items left out."""

    def __init__(self, items: int = MAX_ITEMS):
        self.left = items
        self.cut = 0
        self._open: set = set()

    def value(self, v, depth: int = 0):
        kind = type(v)
        if kind is int or kind is bool or v is None:
            return v if kind is not int or v.bit_length() < 14000 else opaque(v)
        if kind is str:
            return v if _encodable(v) else opaque(v)
        if kind is float:
            return v if math.isfinite(v) else opaque(v)
        if depth >= MAX_DEPTH:
            return opaque(v)
        if isinstance(v, (list, tuple)):
            return self._container(v, depth, self._list)
        if isinstance(v, dict):
            return self._container(v, depth, self._dict)
        if kind is decimal.Decimal:
            if not v.is_finite():
                return opaque(v)
            as_float = float(v)
            return as_float if math.isfinite(as_float) and decimal.Decimal(repr(as_float)) == v else str(v)
        if kind in (datetime.datetime, datetime.date, datetime.time):
            return v.isoformat()
        if kind is uuid.UUID:
            return str(v)
        module = kind.__module__
        if isinstance(module, str) and module.partition(".")[0] in ("numpy", "pandas"):
            try:
                return self._array(v, kind, depth)
            except Exception:
                return opaque(v)
        return opaque(v)

    def _container(self, v, depth, build):
        if id(v) in self._open:
            return opaque(v, "<cycle>")
        self._open.add(id(v))
        try:
            return build(v, depth)
        finally:
            self._open.discard(id(v))

    def _list(self, v, depth):
        out = []
        for item in list.__iter__(v) if isinstance(v, list) else tuple.__iter__(v):
            if self.left <= 0:
                self.cut += 1
                continue
            self.left -= 1
            out.append(self.value(item, depth + 1))
        return out

    def _dict(self, v, depth):
        items = dict.items(v)
        if not all(type(k) is str and _encodable(k) for k in dict.keys(v)):
            if all(type(k) in (int, bool, str) and _encodable(str(k)) for k in dict.keys(v)) and len({str(k) for k in dict.keys(v)}) == len(items):
                items = [(str(k), item) for k, item in items]
            elif all(hasattr(type(k), "isoformat") for k in dict.keys(v)):
                items = [(k.isoformat(), item) for k, item in items]
            else:
                return opaque(v)
        out = {}
        for key, item in items:
            if self.left <= 0:
                self.cut += 1
                continue
            self.left -= 1
            out[key] = self.value(item, depth + 1)
        return out

    def _array(self, v, kind, depth):
        name = kind.__name__
        if name in ("DataFrame", "Series"):
            return self._frame(v, name, depth)
        if name in ("Timestamp", "Timedelta"):
            return v.isoformat()
        if name == "ndarray":
            return {"type": "ndarray", "repr": safe_repr(v), "dtype": str(v.dtype), "shape": list(v.shape), "head": self._list(v.ravel()[:HEAD_ROWS].tolist(), depth)}
        item = getattr(v, "item", None)
        if item is not None and getattr(v, "shape", None) == ():
            plain = item()
            return self.value(plain, depth) if type(plain) is not kind else opaque(v)
        if name.endswith("Index"):
            return {"type": name, "repr": safe_repr(v), "shape": list(v.shape), "head": self._list(v[:HEAD_ROWS].tolist(), depth)}
        return opaque(v)

    def _frame(self, v, name, depth):
        out = {"type": name, "repr": safe_repr(v), "shape": list(v.shape)}
        if name == "Series":
            out["dtype"] = str(v.dtype)
            out["name"] = None if v.name is None else str(v.name)
            head = v.head(HEAD_ROWS)
            out["head"] = [{"index": self.value(i, depth + 1), "value": self.value(x, depth + 1)} for i, x in head.items()]
            return out
        columns = [str(c) for c in v.columns[:1000]]
        out["columns"] = columns
        out["dtypes"] = {c: str(d) for c, d in zip(columns, v.dtypes)}
        head = v.head(HEAD_ROWS).iloc[:, :1000]
        out["head"] = [{c: self.value(x, depth + 1) for c, x in zip(columns, row)} for row in head.itertuples(index=False, name=None)]
        return out


def _encodable(s: str) -> bool:
    if s.isascii():
        return True
    try:
        s.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False


def type_name(v) -> str:
    kind = type(v)
    try:
        module, name = str(kind.__module__), str(kind.__qualname__)
    except Exception:
        return "object"
    return name if module in ("builtins", "__main__") else f"{module}.{name}"


def safe_repr(v, limit: int = MAX_REPR) -> str:
    """A bounded repr; what a hostile __repr__ does ends up as text."""
    try:
        if isinstance(v, (str, bytes)) and len(v) > limit:
            text = repr(v[:limit]) + "..."
        elif type(v) in (list, tuple, set, frozenset, dict) and len(v) > 200:
            some = []
            for item in v:
                some.append(safe_repr(item, 40))
                if len(some) == 20:
                    break
            text = f"<{type(v).__name__} of {len(v)}: {', '.join(some)}, ...>"
        elif type(v) is int and v.bit_length() > 14000:
            text = f"<int of {v.bit_length()} bits>"
        else:
            text = str.__str__(repr(v))
    except RecursionError:
        text = f"<{type_name(v)}: repr recurses too deep>"
    except Exception as error:
        text = f"<{type_name(v)}: repr raised {type(error).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 3] + "..."


def opaque(v, text: "str | None" = None) -> dict:
    kind = type(v).__name__
    return {"type": kind, "repr": safe_repr(v) if text is None else text}


def to_json(v, max_bytes: int = 10 << 20) -> "tuple[object, int]":
    """What json.dumps holds for v, and how much of it was left out (items; 1 where
    the whole was too large and became its repr)."""
    plain = Plain()
    try:
        out = plain.value(v)
    except RecursionError:
        return opaque(v), 0
    if type(out) in (list, dict, str):
        size = len(_dumps(out))
        if size > max_bytes:
            return opaque(v), size
    return out, plain.cut


def preview(v) -> str:
    """The value without running any code of it: exact built-in types only."""
    kind = type(v)
    if kind in (int, float, bool, type(None), complex, str, bytes):
        return safe_repr(v, 200)
    if kind in (list, tuple, set, frozenset, dict):
        if all(type(x) in _SIMPLE for x in v) and len(v) <= 20 and kind is not dict:
            return safe_repr(v, 200)
        if kind is dict and len(v) <= 20 and all(type(k) in _SIMPLE and type(x) in _SIMPLE for k, x in v.items()):
            return safe_repr(v, 200)
        return f"<{kind.__name__} of {len(v)}>"
    if type_name(v).startswith(("pandas.", "numpy.")) and hasattr(kind, "shape"):
        return f"<{kind.__name__} {'x'.join(str(n) for n in v.shape)}>"
    return f"<{type_name(v)}>"
