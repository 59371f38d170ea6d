"""Records the contents of objects and their changes, without running code of their classes.

An object is identified by its address and class as long as a recorded variable holds it. The recorder keeps no
reference to the object, so the object dies at the same time as without the recorder. It does keep references to scalars
among the object's items, which a program cannot notice. This has one error: if an object dies and another object of its
class gets its address between two steps, the recorder takes them for one object.
"""

import builtins
import itertools
import sys
import types

import lookup
import recorder_format as form
from recorder_format import varint

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

MAX_SHOWN = 16  # items of an object that are recorded
MAX_SAMPLE = 64  # items of an object that are compared
MAX_DEPTH = 4

_mro, _qualname = (vars(type)[name].__get__ for name in ("__mro__", "__qualname__"))
_slice = slice(MAX_SAMPLE)
_islice = itertools.islice
_DESCRIPTORS = types.GetSetDescriptorType, types.MemberDescriptorType
_modules = sys.modules


class Full(Exception):
    """Raised if more objects are live than the recorder can know."""


class Entry:
    """An object as it was recorded last."""

    __slots__ = (
        *("number", "serial", "address", "kind", "version", "length", "token", "scalars", "body", "children"),
        *("holders", "reader", "depth", "checked_at"),
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
    holders: int
    reader: "Reader"
    depth: int
    checked_at: int  # the event at which the object was last compared


ENTRY_TYPES: set[type] = {Entry}  # with that of the extension, if it is built


class Reader:
    """How objects of one class are read.

    peek(v) returns the length and a sample of the items: for pairs, the keys and then the values. It is None if nothing
    can be read. A change shows in the identities of the items, or, if peek makes them by value, in their values.
    """

    __slots__ = ("kind", "name", "form", "peek", "by_value")

    def __init__(self, kind: type, name: bytes, shape: int, peek):
        self.kind, self.name, self.form, self.peek = kind, name, shape, peek
        self.by_value = peek is _array or peek is _bytearray


def _is_scalar(v) -> bool:
    kind = type(v)
    return type(kind) is type and kind in form.SCALARS


def _list(v):
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


def _array(v):
    """Samples an ndarray: its dtype, its shape and, evenly spread, up to MAX_SAMPLE of its numbers."""
    size = v.size
    sample = [v.dtype.str, "x".join(map(str, v.shape))]
    if v.dtype.kind in "biufc" and v.flags.c_contiguous:
        sample.append(v.reshape(-1)[:: max(1, size // MAX_SAMPLE)][:MAX_SAMPLE].tobytes())
    return len(v) if v.ndim else None, sample


def _frame(v):
    """Samples a DataFrame by the identities of its axes and blocks, not by their contents."""
    manager = object.__getattribute__(v, "_mgr")
    return len(manager.axes[-1]), [*manager.axes, *manager.blocks][: 2 * MAX_SAMPLE]


class Attributes:
    """Samples the attributes in __dict__ and __slots__ of instances of a user-defined class."""

    __slots__ = ("dict_of", "members")

    def __init__(self, kind: type):
        self.dict_of, self.members = None, []
        for base in _mro(kind):
            for name, member in lookup.of_class(base):
                # A descriptor of another class reads memory that objects of this one do not have.
                if type(member) not in _DESCRIPTORS or member.__objclass__ is not base:
                    continue
                if type(member) is types.MemberDescriptorType:
                    self.members.append((name, member))
                elif name == "__dict__":
                    self.dict_of = self.dict_of or member.__get__

    def __call__(self, v):
        held = self.dict_of(v) if self.dict_of else {}
        length = dict.__len__(held)
        found, items = [*_islice(dict.keys(held), MAX_SAMPLE)], [*_islice(dict.values(held), MAX_SAMPLE)]
        for name, member in self.members:
            try:
                item = member.__get__(v)
            except AttributeError:
                continue
            length += 1
            if len(found) < MAX_SAMPLE:
                items.append(item)
                found.append(name)
        return length, found + items


_BASES = (
    (list, form.ITEMS, _list),
    (tuple, form.ITEMS, _tuple),
    (dict, form.PAIRS, _dict),
    (set, form.ITEMS, _set),
    (frozenset, form.ITEMS, _frozenset),
    (bytearray, form.ITEMS, _bytearray),
)
_HOW_IN_C = {_list: 1, _tuple: 2, _dict: 3, _set: 4, _frozenset: 4, _frame: 6, _array: 7}  # of recorder_fast/recorder.h


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
        entry.checked_at = self.event
        try:
            length, sample = peek(v)
        except Exception:
            return  # another thread is changing it; the next step compares it again
        if length != entry.length or (sample if reader.by_value else list(map(id, sample))) != entry.token:
            self._record_object(v, entry)
        elif entry.children:
            entries = self.entries
            for item in sample:
                child = entries.get(id(item))
                if child is not None and child.reader.peek is not None and child.kind == id(type(item)):
                    self.record_changes(item, child, depth + 1)

    def _record_object(self, v, entry: Entry, deeper: bool = False) -> None:
        """Reads an object and records it as new or changed or, if deeper, with more of its contents than before."""
        reader, children, items = entry.reader, [], []
        exactness, length, sample = form.PART_UNREAD, None, []
        if reader.peek is not None and entry.depth < MAX_DEPTH:
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
            shown, exactness = self._select_shown(v, reader, length, sample)
        else:
            shown, shape = [], form.OPAQUE
        for item in shown:
            data, child = self.value(item, entry.depth + 1)
            items.append(data)
            if child is not None:
                child.holders += 1
                children.append(child)
        before, entry.children = entry.children, children
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
    def _select_shown(v, reader: Reader, length, sample: list) -> tuple[list, int]:
        """Returns the recorded part of a sample, and its exactness."""
        if reader.peek is _frame:
            return _columns(v)
        if reader.peek is _array:
            shown = ["dtype", str(v.dtype), "shape", sample[1]]
            if len(sample) == 2:
                return shown, form.PART_UNREAD
            for i, item in enumerate(v.reshape(-1)[:MAX_SHOWN].tolist()):
                shown += [i, item]
            return (
                shown,
                form.EXACT if v.size <= MAX_SHOWN else form.TRUNCATED if v.size <= MAX_SAMPLE else form.SAMPLED,
            )
        if reader.peek is _bytearray:
            return sample, form.EXACT if length <= MAX_SAMPLE else form.SAMPLED
        exactness = form.EXACT if length <= MAX_SHOWN else form.TRUNCATED if length <= MAX_SAMPLE else form.SAMPLED
        if reader.form == form.ITEMS:
            return list(sample[:MAX_SHOWN]), exactness
        half = len(sample) // 2
        return [x for pair in zip(sample[: min(half, MAX_SHOWN)], sample[half:]) for x in pair], exactness

    def _reader_of(self, kind: type) -> Reader:
        reader = self._readers.get(id(kind))
        if reader is None:
            reader = self._readers[id(kind)] = self._new_reader(kind)
        return reader

    def _new_reader(self, kind: type) -> Reader:
        module, own_name = lookup.module_of(kind), str.__str__(_qualname(kind))
        name = self._writer.name(label(kind, self._user))
        for library, classname, shape, peek in (
            ("numpy", "ndarray", form.TABLE, _array),
            ("pandas", "DataFrame", form.TABLE, _frame),
        ):
            loaded = lookup.find(_modules, library) if own_name == classname else None
            if type(loaded) is types.ModuleType and lookup.find(vars(loaded), classname) is kind:
                return Reader(kind, name, shape, peek)
        for base, shape, peek in _BASES:
            if any(b is base for b in _mro(kind)):
                return Reader(kind, name, shape, peek)
        if module == self._user and not any(b is type for b in _mro(kind)):
            return Reader(kind, name, form.ATTRIBUTES, Attributes(kind))
        return Reader(kind, name, form.OPAQUE, None)

    def describe_reader(self, kind: type) -> tuple:
        """Returns the reader of a class for the extension, with how the extension itself reads such objects."""
        reader = self._reader_of(kind)
        peek = reader.peek
        slots = peek if type(peek) is Attributes else None
        how = 0 if peek is None else 5 if slots else _HOW_IN_C.get(peek, 8)
        return (
            reader,
            reader.name,
            reader.form,
            how,
            peek,
            tuple(slots.members) if slots else (),
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


def _columns(v) -> tuple[list, int]:
    """Returns the first columns of a DataFrame with their types, without reading its cells."""
    manager = object.__getattribute__(v, "_mgr")
    shown: list = []
    columns = manager.axes[0]
    for i, column in enumerate((columns if len(columns) <= MAX_SHOWN else columns[:MAX_SHOWN]).tolist()):
        shown += [column if form.scalar(column) is not None else "?", str(manager.blocks[manager.blknos[i]].dtype)]
    return shown, form.SAMPLED
