"""Records the contents of objects and their changes, without running code of their classes.

An object is identified by its address and class as long as a recorded variable holds it. The recorder keeps no
reference to the object, so the object dies at the same time as without the recorder. It does keep references to scalars
among the object's items, which a program cannot notice. This has one error: if an object dies and another object of its
class gets its address between two steps, the recorder takes them for one object.
"""

import builtins
import collections
import itertools
import sys
import types

import library_values
import lookup
import recorder_format as form
import tables
import values
from library_values import raw
from recorder_format import varint

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_SHOWN = 16  # items of an object that are recorded
MAX_SAMPLE = 64  # items of an object that are compared
MAX_DEPTH = 4
MAX_LINE = 1000  # characters of the text of an object
MAX_TABLE_VALUES = 400  # labels and cells of a table that are recorded; a reader rejects an object of 1024 values
TABLES_VALUES = 3200  # of all tables of a recording; each takes at most an eighth of what the earlier ones have left
_UNREADABLE: tuple = [], form.PART_UNREAD, None

_args_of = vars(BaseException)["args"].__get__
_mro, _qualname, _basicsize = (vars(type)[name].__get__ for name in ("__mro__", "__qualname__", "__basicsize__"))
_sizeof = list.__sizeof__
_slice = slice(MAX_SAMPLE)
_islice = itertools.islice
_modules = sys.modules


class Full(Exception):
    """Raised if more objects are live than the recorder can know."""


class Entry:
    """An object as it was recorded last."""

    __slots__ = (
        *("number", "serial", "address", "kind", "version", "length", "token", "scalars", "body", "children"),
        *("changing_children", "holders", "reader", "depth", "checked_at"),
    )
    number: int  # number among the objects that are known now; it is used again
    serial: int  # number among all objects that were ever known
    address: int
    kind: int  # id of the class
    version: int  # -1 once the object is forgotten
    length: int | None
    token: list  # what is compared: identities of the sampled items, or the sample if it is made by value
    scalars: list  # of the sample; the references keep their identities valid
    body: bytes
    children: "list[Entry]"
    changing_children: int  # those whose contents can change
    holders: int
    reader: "Reader"
    depth: int
    checked_at: int  # the event at which the object was last compared


ENTRY_TYPES: set[type] = {Entry}  # with that of the extension, if it is built


class Reader:
    """How objects of one class are read.

    peek(v) returns the length and a sample of the items: for pairs, the keys and then the values. It is None if nothing
    can be read. A change shows in the identities of the items, or, if peek makes them by value, in their values.

    show(v, sample) returns what is recorded in place of the sample, its exactness, and the length. If only show is
    there, the object never changes.
    """

    __slots__ = ("kind", "name", "form", "peek", "show", "by_value", "is_table")

    def __init__(self, kind: type, name: bytes, shape: int, peek, show=None):
        self.kind, self.name, self.form, self.peek, self.show = kind, name, shape, peek, show
        self.is_table = type(peek) is Table and peek.kind in _TABLES_IN_C
        self.by_value = peek is _bytearray or type(peek) is Table


def _is_scalar(v) -> bool:
    kind = type(v)
    return type(kind) is type and kind in form.SCALARS


def _list(v):
    if _sizeof(v) < _basicsize(type(v)):
        raise RuntimeError("its own sort has taken its items away for now")
    return list.__len__(v), list.__getitem__(v, _slice)


def _tuple(v):
    return tuple.__len__(v), tuple.__getitem__(v, _slice)


def _set(v):
    return set.__len__(v), list(_islice(set.__iter__(v), MAX_SAMPLE))


def _frozenset(v):
    return frozenset.__len__(v), list(_islice(frozenset.__iter__(v), MAX_SAMPLE))


def _dict(v):
    return dict.__len__(v), [*_islice(dict.keys(v), MAX_SAMPLE), *_islice(dict.values(v), MAX_SAMPLE)]


def _bytearray(v):
    return bytearray.__len__(v), [bytes(bytearray.__getitem__(v, _slice))]


class Table:
    """Samples a table by its shape and values, some values if it is large."""

    def __init__(self, kind: str):
        self.kind = kind

    def __call__(self, v):
        try:
            found = tables.token(v, self.kind)
        except tables.Unreadable as error:
            return None, [str(error)]
        return len(v) if self.kind != "ndarray" or v.ndim else None, found


def _show_table(v, kind: str, form_of: int, max_values: int = 0) -> tuple:
    # The texts of all cells share one bound, because the cells may share their parts.
    show = values.Preview(MAX_TABLE_VALUES * tables.MAX_CELL).text
    try:
        tables.require_memory(tables.all_arrays(v, kind))
        table = tables.read(v, kind, show, max_values)
    except tables.Unreadable as error:
        return [raw(f"<{kind} that is not read: {error}>")], form.PART_UNREAD, None
    shown: list = [raw(values.readable(tables.text(table, show), MAX_LINE))]
    if form_of == form.FRAMED:
        shown.append(len(table.columns))
        for column in table.columns:
            shown += column
        for label, cells in table.rows:
            shown += [label, *cells]
    else:
        for label, cells in table.rows:
            shown += [label, *cells]
    length = table.shape[0] if table.shape else None
    if not kind.endswith("Index") and not tables.covers(tables.arrays(v, kind)[0]):
        return shown, form.SAMPLED, length
    return shown, form.EXACT if table.is_whole else form.TRUNCATED, length


def _show_leaf(read, v) -> tuple:
    found = read(v)
    return _UNREADABLE if found is None else ([found], form.EXACT, None)


def _deque(v):
    return library_values.deque_items(v, MAX_SAMPLE)


def _view(v):
    return library_values.view_items(v, MAX_SAMPLE)


class Error:
    """Samples the arguments and the attributes of an exception."""

    def __init__(self, kind: type):
        self.attributes = lookup.Attributes(kind, MAX_SAMPLE)

    def __call__(self, v):
        length, found = self.attributes(v)
        names, items = found[: len(found) // 2], found[len(found) // 2 :]
        pairs = [(name, item) for name, item in zip(names, items) if type(name) is str and name[:2] != "__"]
        return len(pairs) + 1, [_args_of(v), *(x for pair in pairs for x in pair)]


def _show_error(v, sample: list) -> tuple:
    limit = values.MAX_REPR // 2
    text = library_values.error_text(v, limit, values.Preview(limit).text)
    shown = [raw(values.readable(text, MAX_LINE)), "args", *sample[: 2 * MAX_SHOWN - 1]]
    return shown, form.EXACT if len(sample) <= 2 * MAX_SHOWN - 1 else form.TRUNCATED, None


class Derived:
    """Samples the attributes of a value whose class is derived from a scalar. Those of an enumeration are its own."""

    def __init__(self, kind: type):
        self.attributes = lookup.Attributes(kind, MAX_SAMPLE)

    def __call__(self, v):
        _, found = self.attributes(v)
        pairs = zip(found[: len(found) // 2], found[len(found) // 2 :])
        return None, [part for pair in pairs if type(pair[0]) is str and pair[0][:1] != "_" for part in pair]


def _show_derived(v, sample: list) -> tuple:
    text = values.readable(library_values.derived_text(v, values.MAX_REPR // 2), MAX_LINE)
    return [raw(text), *sample[: 2 * MAX_SHOWN]], form.EXACT, None


class Fields:
    """Samples a named tuple: its names, and then its items."""

    def __init__(self, names: tuple):
        self.names = names[:MAX_SAMPLE]

    def __call__(self, v):
        items = tuple.__getitem__(v, _slice)
        return tuple.__len__(v), [*self.names[: len(items)], *items[: len(self.names)]]


_BASES = (
    (list, form.ITEMS, _list),
    (tuple, form.ITEMS, _tuple),
    (dict, form.PAIRS, _dict),
    (set, form.ITEMS, _set),
    (frozenset, form.ITEMS, _frozenset),
    (bytearray, form.ITEMS, _bytearray),
    (collections.deque, form.ITEMS, _deque),
)
_HOW_IN_C = {_list: 1, _tuple: 2, _dict: 3, _set: 4, _frozenset: 4, _bytearray: 8}  # of recorder_fast/recorder.h
_TABLES_IN_C = {"DataFrame": 6, "Series": 6, "ndarray": 7}
_LEAVES_IN_C = {("numpy", "float64"): 11, ("numpy", "int64"): 12, ("pandas", "Timestamp"): 13}


def label(kind: type, user: str = "__main__") -> str:
    """Returns the name of a class, with its module unless that is builtins or the user's."""
    module = lookup.module_of(kind)
    name = str.__str__(_qualname(kind))
    return name if module in ("builtins", user, "") else f"{module}.{name}"


class Objects:
    """The objects that recorded variables hold. user is the __module__ of the user's classes."""

    def __init__(self, writer: form.Writer, user: str):
        self._writer = writer
        self._user = user
        self._readers: dict = {}  # by id of the class, which the reader holds
        self._serial = self._last_number = 0
        self._free: list = []  # numbers of forgotten objects: small numbers make short recordings
        self.unheld: list = []  # entries without a holder, which are forgotten unless the next line holds them
        self.entries: dict = {}  # by address
        self.max_objects = 0  # objects that may be known at a time
        self.skips_tables = False  # tables are not compared now
        self.skips_frames = False  # of tables only arrays are compared now
        self.array_changed = False  # since this was set to False
        self._table_values = TABLES_VALUES
        self.event = 0  # counts events: an object is compared once in each

    @staticmethod
    def raise_full() -> None:
        raise Full

    def value(self, v, depth: int = 0) -> tuple[bytes, Entry | None]:
        """Encodes a value, after the records that it needs. Returns the bytes and, for an object, its entry."""
        data = form.scalar(v)
        if data is not None:
            return data, None
        entry = self.entries.get(id(v))
        if entry is None or entry.kind != id(type(v)):
            entry = self._new(v, depth)
        elif depth < entry.depth and entry.reader.peek is not None:
            entry.depth = depth
            self._record_object(v, entry, deeper=True)
        else:
            self.record_changes(v, entry, depth)
        return b"@" + varint(entry.number), entry

    def _new(self, v, depth: int) -> Entry:
        entry = Entry()
        self._serial += 1
        if self._last_number - len(self._free) >= self.max_objects:
            self.raise_full()
        if not self._free:
            self._last_number += 1
        entry.number, entry.serial = self._free.pop() if self._free else self._last_number, self._serial
        entry.address, entry.kind = id(v), id(type(v))
        entry.version, entry.holders, entry.depth, entry.checked_at = 0, 0, depth, self.event
        entry.length, entry.token, entry.body, entry.children = None, [], b"", []
        entry.changing_children = 0
        entry.reader = self._reader_of(type(v))
        self.entries[entry.address] = entry
        self._record_object(v, entry)
        return entry

    def record_changes(self, v, entry: Entry, depth: int = 0) -> None:
        """Records the changes of an object and of the objects that it holds."""
        reader = entry.reader
        peek = reader.peek
        if peek is None or entry.checked_at == self.event or depth >= MAX_DEPTH:
            return
        if reader.is_table and (self.skips_tables or self.skips_frames and reader.form == form.FRAMED):
            return
        entry.checked_at = self.event
        try:
            length, sample = peek(v)
        except Exception:
            return  # another thread is changing it; the next step compares it again
        if length != entry.length or (sample if reader.by_value else list(map(id, sample))) != entry.token:
            self.array_changed = self.array_changed or reader.is_table and reader.form != form.FRAMED
            self._record_object(v, entry)
        elif entry.changing_children:
            entries = self.entries
            for item in sample:
                child = entries.get(id(item))
                if child is not None and child.reader.peek is not None and child.kind == id(type(item)):
                    self.record_changes(item, child, depth + 1)

    def _record_object(self, v, entry: Entry, deeper: bool = False) -> None:
        """Reads an object and records it as new or changed or, if deeper, with more of its contents than before."""
        reader, children, items = entry.reader, [], []
        exactness, length, sample = form.PART_UNREAD, None, []
        if reader.peek is None:
            exactness = form.PART_UNREAD if reader.show is None else form.EXACT
        elif entry.depth < MAX_DEPTH:
            try:
                length, sample = reader.peek(v)
                exactness = form.EXACT
            except Exception:
                length, sample = None, []
        entry.length, entry.token = length, sample if reader.by_value else list(map(id, sample))
        entry.scalars = [item for item in sample if _is_scalar(item)]
        shape = reader.form
        if exactness == form.EXACT:
            if reader.form == form.ATTRIBUTES:
                length, sample = _without_odd_names(length, sample)
            shown, exactness, length = self._select_shown(v, reader, length, sample)
        else:
            shown, shape = [], form.OPAQUE
        for item in shown:
            data, child = self.value(item, entry.depth + 1)
            items.append(data)
            if child is not None:
                child.holders += 1
                children.append(child)
        before, entry.children = entry.children, children
        entry.changing_children = sum(child.reader.peek is not None for child in children)
        for child in before:
            self.drop_holder(child)
        head = varint(exactness) + varint(0 if length is None else length + 1) + varint(shape) + varint(len(items))
        body = head + b"".join(items)
        if body == entry.body and (deeper or exactness == form.EXACT):
            return  # equal scalars have taken the place of others
        entry.body = body
        entry.version += not deeper
        out = self._writer.out
        if not deeper and entry.version == 1:
            out += varint(form.OBJECT) + varint(entry.number) + reader.name + b"\x01" + body
        else:
            out += varint(form.MUTATE) + varint(entry.number) + varint(entry.version if deeper else 0) + body

    @staticmethod
    def _select_shown(v, reader: Reader, length, sample: list) -> tuple:
        """Returns what is recorded of an object, its exactness, and its length or None."""
        if reader.show is not None:
            try:
                return reader.show(v, sample)
            except Exception:  # another thread is changing it, or user code has replaced a part of the library
                return _UNREADABLE
        if reader.peek is _bytearray:
            return sample, form.EXACT if length <= MAX_SAMPLE else form.SAMPLED, length
        exactness = form.EXACT if length <= MAX_SHOWN else form.TRUNCATED if length <= MAX_SAMPLE else form.SAMPLED
        if reader.form == form.ITEMS:
            return list(sample[:MAX_SHOWN]), exactness, length
        half = len(sample) // 2
        return [x for pair in zip(sample[: min(half, MAX_SHOWN)], sample[half:]) for x in pair], exactness, length

    def _reader_of(self, kind: type) -> Reader:
        reader = self._readers.get(id(kind))
        if reader is None:
            reader = self._readers[id(kind)] = self._new_reader(kind)
        return reader

    def _new_reader(self, kind: type) -> Reader:
        module = lookup.module_of(kind)
        name = self._writer.name(label(kind, self._user))
        read = library_values.leaf_reader(kind)
        if read is not None:
            return Reader(kind, name, form.DESCRIBED, None, lambda v, _: _show_leaf(read, v))
        table = tables.kind_of(kind)
        if table:
            if table in ("DataFrame", "Series"):
                return Reader(kind, name, form.FRAMED, Table(table), lambda v, _: self._show_frame(v, table))
            peek = None if table.endswith("Index") else Table(table)
            return Reader(kind, name, form.DESCRIBED, peek, lambda v, _: _show_table(v, table, form.DESCRIBED))
        if library_values.is_view(kind):
            return Reader(kind, name, form.PAIRS if library_values.has_pairs(kind) else form.ITEMS, _view)
        if library_values.is_exception(kind):
            return Reader(kind, name, form.DESCRIBED, Error(kind), _show_error)
        if library_values.is_derived(kind):
            return Reader(kind, name, form.DESCRIBED, Derived(kind), _show_derived)
        fields = library_values.field_names(kind)
        if fields:
            return Reader(kind, name, form.ATTRIBUTES, Fields(fields))
        for base, shape, sample in _BASES:
            if any(b is base for b in _mro(kind)):
                return Reader(kind, name, shape, sample)
        if kind is types.SimpleNamespace or module == self._user and not any(b is type for b in _mro(kind)):
            return Reader(kind, name, form.ATTRIBUTES, lookup.Attributes(kind, MAX_SAMPLE))
        return Reader(kind, name, form.OPAQUE, None)

    def _show_frame(self, v, kind: str) -> tuple:
        """Shows a frame or a series: many rows of the first ones of a run, few rows in a loop that makes many."""
        wanted = min(MAX_TABLE_VALUES, self._table_values // 8)
        found = _show_table(v, kind, form.FRAMED, wanted)
        self._table_values = max(0, self._table_values - len(found[0]))
        return found

    def describe_reader(self, kind: type) -> tuple:
        """Returns the reader of a class for the extension, with how the extension itself reads such objects."""
        reader = self._reader_of(kind)
        peek = reader.peek
        slots = peek if type(peek) is lookup.Attributes else None
        if peek is None:
            own_name = lookup.module_of(kind), str.__str__(_qualname(kind))
            how = 0 if reader.show is None else _LEAVES_IN_C.get(own_name, 10)
        elif type(peek) is Table:
            how = _TABLES_IN_C.get(peek.kind, 8)
        else:
            how = 5 if slots else _HOW_IN_C.get(peek, 9)
        return (
            reader,
            reader.name,
            reader.form,
            how,
            peek,
            tuple(slots.members) if slots else tables.classes(kind) if type(peek) is Table else (),
            bool(slots and slots.dict_of),
        )

    def drop_holder(self, entry: Entry) -> None:
        entry.holders -= 1
        self.queue_unheld(entry)

    def queue_unheld(self, entry: Entry) -> None:
        """Queues an entry, if it has no holder, to be forgotten unless the next line holds it."""
        if entry.holders <= 0:
            self.unheld.append(entry)

    def forget_unheld(self) -> None:
        """Records that the queued objects are free, unless a variable holds them again."""
        waiting = self.unheld
        while waiting:
            entry: Entry = waiting.pop()
            if entry.holders > 0 or entry.version < 0:
                continue
            if self.entries.get(entry.address) is entry:
                del self.entries[entry.address]
            self._writer.out += varint(form.FREE) + varint(entry.number)
            self._free.append(entry.number)
            entry.version = -1
            for child in entry.children:
                child.holders -= 1
                waiting.append(child)
            entry.children = []

    def reset(self) -> None:
        """Forgets all objects without records."""
        self.entries.clear()
        self.unheld.clear()
        self._free.clear()
        self._last_number = 0

    def forget_except(self, numbers: set) -> None:
        """Records that all other objects are free: no recorded variable reaches them, but objects in a cycle hold
        each other."""
        for entry in [entry for entry in self.entries.values() if entry.number not in numbers]:
            entry.holders = 0
            self.unheld.append(entry)
        self.forget_unheld()

    def restate(self, out: bytearray, live: list[Entry]) -> set:
        """Appends records that state the live objects as new. Returns their numbers."""
        waiting, seen = list(live), set()
        while waiting:
            entry = waiting.pop()
            if entry.number in seen:
                continue
            seen.add(entry.number)
            out += varint(form.OBJECT) + varint(entry.number) + entry.reader.name + varint(entry.version) + entry.body
            waiting.extend(entry.children)
        return seen


def _without_odd_names(length, sample: list) -> "tuple":
    """Leaves out the attributes of a sample whose names are not exactly str."""
    half = len(sample) // 2
    if lookup.are_plain(sample[:half]):
        return length, sample
    kept = [i for i in range(half) if type(sample[i]) is str]
    return length - half + len(kept), [*(sample[i] for i in kept), *(sample[half + i] for i in kept)]
