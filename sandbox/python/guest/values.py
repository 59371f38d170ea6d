"""Shows values as short text.

These functions do not fail for any value, and they are bounded in size, depth and time. safe_repr() may call the
value's own __repr__, unless sharing.py finds that it would be too long. preview() runs no user code.
"""

import builtins
import collections
import functools
import itertools
import math
import sys
import types
import uuid

import library_values
import lookup
import sharing
import tables

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_ITEMS = 200_000  # of one value, in all its containers
MAX_REPR = 1000  # characters
MAX_DIGITS = 4300  # of an int: Python's own JSON reader refuses a longer one
MAX_SHOWN_ROWS = 60  # of a table, as in notebooks; a longer one has its first SHOWN_ROWS
SHOWN_ROWS = 10
MAX_SHOWN_COLUMNS = 20
MAX_SHOWN = 16  # items of a view, a deque or an object in a preview
MAX_NESTED = 4  # objects in objects in a preview
MAX_LEVELS = 8  # containers in containers in a text
VISITED = 1000  # objects that a text visits, besides one for each 4 characters: a shorter object is "[], "
MAX_TABLES = 16  # tables of objects in a text; reading one takes as long as 100 other objects

_max_digits = sys.get_int_max_str_digits
_TOO_LARGE = 10**MAX_DIGITS
_intern_name, _intern_qualname = (vars(type)[n].__get__ for n in ("__name__", "__qualname__"))
_SCALARS = {int, str, float, bool, bytes, complex, type(None), type(...)}

# The classes of lists and dicts whose items preview shows; a module adds its own.
LISTS: set = {list, tuple, set, frozenset}
# Classes whose objects have a shape, by the name of the class: the package that has them.
_SHAPED = {"DataFrame": "pandas", "Series": "pandas", "ndarray": "numpy"}
_shaped: dict = {}  # by id: those that were found in their package
# Classes whose str is the JSON text.
TEXTS: set = {uuid.UUID}
DICTS: set = {dict}


def printable(v: int) -> bool:
    """Tells whether an int has a decimal text that JSON readers take: Python limits its length, and the user may limit
    it further."""
    bits = v.bit_length()
    if bits < 2000:
        return True
    limit = _max_digits()
    return -_TOO_LARGE < v < _TOO_LARGE and (limit == 0 or limit >= MAX_DIGITS or bits * 0.30103 + 2 < limit)


def encodable(s: str) -> bool:
    """Tells whether s can be UTF-8: a lone surrogate can't."""
    if s.isascii():
        return True
    try:
        s.encode("utf-8")
        return True
    except UnicodeEncodeError:
        return False


def escaped(s: str) -> str:
    """Returns s as text that can be encoded: a lone surrogate becomes its escape."""
    s = str.__str__(s)
    return s if encodable(s) else s.encode("utf-8", "backslashreplace").decode("utf-8")


def readable(s: str, limit: int) -> str:
    """Returns s as text that can be encoded, of at most limit characters."""
    s = str.__str__(s)
    cut = len(s) > limit
    s = escaped(s[:limit] if cut else s)
    return s[: limit - 3] + "..." if cut or len(s) > limit else s


def unique(names) -> "list[str]":
    """Returns the names, with _2, _3 ... appended to repeated names."""
    out: list = []
    seen: set = set()
    for name in names:
        kept, n = name, 2
        while kept in seen:
            kept, n = f"{name}_{n}", n + 1
        seen.add(kept)
        out.append(kept)
    return out


def name_of(kind: type) -> str:
    """Returns the name of a class without a call of its metaclass."""
    return readable(_intern_name(kind), 200)


def type_name(v) -> str:
    """Returns the name of v's class, with its module unless that is the user's own."""
    kind = type(v)
    module, name = lookup.module_of(kind), readable(_intern_qualname(kind), 200)
    return name if module in ("builtins", "__main__", "") else f"{readable(module, 100)}.{name}"


def is_of_package(kind: type, *packages: str) -> bool:
    """Tells whether kind or one of its base classes belongs to one of these packages."""
    return any(lookup.module_of(base).partition(".")[0] in packages for base in type.__dict__["__mro__"].__get__(kind))


def row_bounds() -> "tuple[int, int]":
    """Returns how many rows a table may have to be shown whole, and how many are shown of a longer one: the user's
    settings of pandas, or those of notebooks."""
    most, least = pandas_option("max_rows", MAX_SHOWN_ROWS), pandas_option("min_rows", SHOWN_ROWS)
    return most, least or most


def pandas_option(name: str, default: int) -> int:
    """Returns a number among the user's settings of pandas: a large one for None, and default for 0 or without
    pandas."""
    pandas = sys.modules.get("pandas")
    try:
        found = default if pandas is None else pandas.get_option("display." + name)
        return sys.maxsize if found is None else max(int(found), 0) or default
    except Exception:  # pandas is being imported, or user code has replaced a part of it
        return default


def opaque(v) -> dict:
    """Returns {"type", "repr"} for a value that JSON can't represent."""
    return {"type": name_of(type(v)), "repr": safe_repr(v)}


def safe_repr(v, limit: int = MAX_REPR) -> str:
    """Returns a bounded repr. A __repr__ that fails becomes text."""
    return shown_repr(v, limit)[0]


def shown_repr(v, limit: int) -> "tuple[str, int]":
    """Returns safe_repr(v, limit), and how many items of lists and characters it lacks."""
    texts = Preview(limit, runs_code=True)
    text = texts.show(v, limit)
    return readable(text, limit), max(texts.left_out, len(text) - limit, 0)


def summarized(v) -> int:
    """Returns how many values the repr of an array, a Series or an Index leaves out, as the user's settings say."""
    kind = type(v)
    if not is_of_package(kind, "numpy", "pandas"):
        return 0
    try:
        if shape(v) is not None and name_of(kind) == "ndarray":
            options = sys.modules["numpy"].get_printoptions()
            if v.size <= options["threshold"]:
                return 0
            return v.size - math.prod(min(n, 2 * options["edgeitems"]) for n in v.shape)
        if shape(v) is not None:
            most, least = row_bounds()
            return len(v) - min(least, most) if len(v) > most else 0
        if hasattr(v, "get_loc"):
            most = pandas_option("max_seq_items", 100)
            return len(v) - 2 * min(most // 2, 10) if len(v) > most else 0
    except Exception:
        pass  # user code has replaced a part of the package
    return 0


def cut_cells(columns: list, most_columns: int, most_rows: int) -> int:
    """Returns how many characters pandas leaves out of the texts in the cells of columns, which are Series, because the
    user's settings say so. Of more columns and rows than these, pandas shows the first and the last ones."""
    width, count = pandas_option("max_colwidth", 50), 0
    try:
        for column in _ends(columns, most_columns) if width < sys.maxsize else ():
            if column.dtype.kind == "O":
                # A blank and three points are a part of the width.
                texts = (cell for cell in _ends(column, most_rows) if type(cell) is str and len(cell) >= width)
                count += sum(len(text) - max(width - 4, 0) for text in texts)
    except Exception:
        pass  # user code has replaced a part of the package
    return count


def _ends(items, most: int) -> list:
    """Returns the items that pandas shows of a list or Series."""
    half, count = most // 2, len(items)
    if count <= most:
        return list(items)
    return [*items[: max(half, 1)], *(items[count - half :] if half else ())]


def preview(v, limit: int = 200) -> str:
    """Returns the value as text without running its code. An object of the user's is shown with its attributes, and
    one of an unknown class as <Type>. The recorder and the reader of recordings write the same text."""
    try:
        return Preview(limit).text(v, limit)
    except Exception:  # another thread changes the value
        return f"<{type_name(v)}>"


def shape(v) -> "list[int] | None":
    """Returns the shape of a DataFrame, Series or array, and None for an object that only imitates one."""
    kind = type(v)
    name = str.__str__(_intern_name(kind))
    if name not in _SHAPED:
        return None
    try:
        if _shaped.get(id(kind)) is not kind:
            package = lookup.find(sys.modules, _SHAPED[name])
            if type(package) is not types.ModuleType or lookup.find(vars(package), name) is not kind:
                return None
            _shaped[id(kind)] = kind
        return [int(n) for n in v.shape]
    except Exception:  # user code has replaced a part of the package
        return None


def own_repr(v, limit: int) -> "tuple[str, int]":
    """Returns the first limit characters of the value's repr, or of its preview if its repr would take too long, and
    how many items of lists and characters it lacks. A __repr__ that fails becomes text."""
    texts = Preview(limit, runs_code=True)
    text = texts.show(v, limit) if texts.needs_preview(v) else call_repr(v)
    return readable(text, limit), max(texts.left_out, len(text) - limit, 0)


def call_repr(v) -> str:
    try:
        return str.__str__(repr(v))
    except KeyboardInterrupt:
        raise
    except RecursionError:
        return f"<{type_name(v)}: its repr recurses too deep>"
    except BaseException as error:
        return f"<{type_name(v)}: its repr raised {name_of(type(error))}>"


def attributes(v, most: int = 1000) -> "list | None":
    """Returns the names and values of the attributes of an object of a user's class; None for another object."""
    kind = type(v)
    is_users = lookup.module_of(kind) == "__main__" and not library_values.is_static(kind)
    if not is_users or issubclass(kind, (type, list, tuple, dict, set, frozenset, collections.deque, BaseException)):
        return None
    _, found = lookup.Attributes(kind, most)(v)
    return [pair for pair in zip(found[: len(found) // 2], found[len(found) // 2 :]) if type(pair[0]) is str]


class Preview:
    """Makes texts of values, of about limit characters together. They visit at most VISITED + limit // 4 objects,
    because values may share their parts; "..." stands for others. If runs_code, values that are not built in have their
    own reprs. left_out counts the characters and the items of lists that were left out. own_text, if it is not None,
    returns the text of a value that has one of its own, and else None."""

    max_levels, max_nested, max_shown = MAX_LEVELS, MAX_NESTED, MAX_SHOWN

    def __init__(self, limit: int, runs_code: bool = False, own_text=None):
        self._objects_left, self._tables_left = VISITED + limit // 4, MAX_TABLES
        self._runs_code, self._own_text = runs_code, own_text
        self.left_out = 0

    def text(self, v, limit: int, depth: int = 0) -> str:
        """Returns the text of one value."""
        return readable(self.show(v, limit, depth), limit)

    def needs_preview(self, v) -> bool:
        """Tells whether the value's own repr would take too long, or end the process."""
        try:
            is_long, found = sharing.shares_parts(v)
            self._objects_left -= 4 * found  # the search in one takes as long as 4 visits
            return is_long or tables.arrow_problem(v) != ""
        except Exception:  # another thread changes the value, or a table in it can't be read
            return True

    def show(self, v, limit: int, depth: int = 0) -> str:
        """Returns the text of a value. limit bounds its length, but not exactly."""
        kind = type(v)
        known = type(kind) is type  # a metaclass of the user's may have a __hash__
        if known and kind in _SCALARS:
            if kind is int and (v.bit_length() > 14_000 or not printable(v)):
                return f"<int of {v.bit_length()} bits>"
            if kind not in (str, bytes) or len(v) <= limit:
                return repr(v)
            self.left_out += len(v) - limit
            return repr(v[:limit])
        self._objects_left -= 1
        if self._objects_left < 0:
            return "..."
        if known and (kind in DICTS or kind in LISTS):
            return self._items(v, "", limit, depth)
        if self._own_text is not None and (text := self._own_text(v)) is not None:
            return text
        if issubclass(kind, (list, tuple, set, frozenset, dict)):
            base = next(b for b in (list, tuple, set, frozenset, dict) if issubclass(kind, b))
            fields = library_values.field_names(kind) if base is tuple and not self._runs_code else ()
            if fields and depth < self.max_nested:
                pairs = zip(fields[: self.max_shown], tuple.__iter__(v))
                texts = [f"{name}={self.show(item, limit, depth + 1)}" for name, item in pairs]
                return _with_more(f"<{type_name(v)} ", "", texts, tuple.__len__(v), len(texts), ">")
            if not self._runs_code:
                return self._items(v, type_name(v), limit, depth) if depth < self.max_nested else f"<{type_name(v)}>"
            if base.__len__(v) > 200 or depth > 20 or self.needs_preview(v):  # its own repr would be too long
                return self._items(v, name_of(kind), limit, depth)
            return call_repr(v)
        if self._runs_code and not self.needs_preview(v):
            return call_repr(v)
        try:
            return self._without_code(v, limit, depth)
        except Exception:  # another thread changes the value, or user code has replaced a part of a library
            return f"<{type_name(v)}>"

    def _items(self, v, name: str, limit: int, depth: int) -> str:
        kind = type(v)
        base = next(b for b in (list, tuple, frozenset, set, dict) if issubclass(kind, b))
        start, end = {list: ("[", "]"), tuple: ("(", ")")}.get(base, ("{", "}"))
        size = base.__len__(v)
        if size == 0 and base in (set, frozenset):
            return f"{base.__name__}()"
        if depth >= self.max_levels and size:
            return f"{start}...{end}"
        parts: list = []
        used = 30  # for the brackets and the count
        for item in itertools.islice(dict.items(v) if base is dict else base.__iter__(v), limit):
            bytes_left = max(limit - used, 8)
            if base is dict:
                text = self.show(item[0], bytes_left, depth + 1) + ": " + self.show(item[1], bytes_left, depth + 1)
            else:
                text = self.show(item, bytes_left, depth + 1)
            used += len(text) + 2
            if used > limit and parts:
                self.left_out += size - len(parts)
                parts.append(f"... {size} in all")
                break
            parts.append(text)
        text_inside = ", ".join(parts)
        if base is tuple and size == 1:
            text_inside += ","
        text = start + text_inside + end
        if base is frozenset and not name:
            name = "frozenset"
        return f"{name}({text})" if name else text

    def _without_code(self, v, limit: int, depth: int) -> str:
        """Returns the text of a value that is not built in, without running its code."""
        kind = type(v)
        read = library_values.leaf_reader(kind)
        if read is not None:
            found = read(v)
            if type(found) is library_values.Raw:
                return found.text
            return f"<{type_name(v)}>" if found is None else self.show(found, limit)
        table = tables.kind_of(kind)
        if table:
            return self._table(v, table)
        if self._runs_code and (problem := tables.arrow_problem(v)):
            return f"<{name_of(kind)} that is not read: {problem}>"
        if depth >= self.max_levels:
            return f"<{type_name(v)}>"
        if library_values.is_exception(kind):
            show = functools.partial(self.text, depth=depth + 1)
            return library_values.error_text(v, limit, show)
        if library_values.is_view(kind):
            size, found = library_values.view_items(v, self.max_shown)
            if library_values.has_pairs(kind):
                pairs = zip(found[: len(found) // 2], found[len(found) // 2 :])
                texts = [": ".join(self.show(part, limit, depth + 1) for part in pair) for pair in pairs]
                return _with_more(name_of(kind), "({", texts, size, len(texts), "})")
            texts = [self.show(item, limit, depth + 1) for item in found]
            return _with_more(name_of(kind), "([", texts, size, len(found), "])")
        if kind is bytearray:
            return f"bytearray({bytes(bytearray.__getitem__(v, slice(limit)))!r})"
        if kind is collections.deque:
            size, found = library_values.deque_items(v, self.max_shown)
            texts = [self.show(item, limit, depth + 1) for item in found]
            return _with_more(type_name(v), "([", texts, size, len(found), "])")
        if library_values.is_derived(kind):
            return library_values.derived_text(v, limit)
        found = attributes(v, self.max_shown + 1) if depth < self.max_nested else None
        if found is not None:
            texts = [f"{name}={self.show(item, limit, depth + 1)}" for name, item in found[: self.max_shown]]
            return _with_more(f"<{type_name(v)}{' ' if texts else ''}", "", texts, len(found), len(texts), ">")
        return f"<{type_name(v)}>"

    def _table(self, v, kind: str) -> str:
        try:
            held = tables.all_arrays(v, kind)
            tables.require_memory(held)
            if any(array.dtype.hasobject for array in held):
                self._tables_left -= 1
                if self._tables_left < 0:
                    return f"<{type_name(v)}>"
            return tables.text(tables.read(v, kind, self.text), self.text)
        except tables.Unreadable as error:
            return f"<{kind} that is not read: {error}>"


def _with_more(name: str, start: str, texts: list, size: int, shown: int, end: str) -> str:
    return name + start + ", ".join([*texts, *(["..."] if shown < size else [])]) + end
