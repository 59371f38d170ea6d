"""Objects as records: what they are and when they change, running none of their code.

An object is known by its address and class for as long as a variable that is recorded
holds it; no reference to it is kept, so it dies when it would have died. Scalars among
its items are kept: nobody can see that. What follows from it: an object that takes the
place of a dead one of its class, between two steps, is taken for it.
"""

import builtins
import itertools
import sys
import types

import recorder_format as form
from recorder_format import n

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]  # user code may replace the real ones

SHOWN = 16  # items of one object
SAMPLE = 64  # items that are looked at for changes
DEPTH = 4

_mro, _module_of, _qualname = (vars(type)[name].__get__ for name in ("__mro__", "__module__", "__qualname__"))
_slice = slice(SAMPLE)
_islice = itertools.islice
_modules = sys.modules


class Full(Exception):
    """There are more objects than are recorded."""


class Entry:
    """One object as it was recorded last."""

    __slots__ = ("number", "serial", "address", "kind", "version", "length", "token", "kept", "body", "children", "held", "reader", "depth", "seen")
    number: int  # of those that are known now: it is given again
    serial: int  # of all that there ever were
    address: int
    kind: int  # id of the class
    version: int
    length: int | None
    token: list
    kept: list
    body: bytes
    children: "list[Entry]"
    held: int
    reader: "Reader"
    depth: int
    seen: int


ENTRIES: set[type] = {Entry}  # and the extension's, where it is there


class Reader:
    """How objects of one class are read. peek gives a length and the sample of items
    (for pairs, the keys and then the values); it is None where there is nothing to see.
    A change is seen by the items' identity, or where they are made afresh by value."""

    __slots__ = ("kind", "name", "form", "peek", "made")

    def __init__(self, kind: type, name: bytes, shape: int, peek):
        self.kind, self.name, self.form, self.peek = kind, name, shape, peek
        self.made = peek is _array or peek is _bytearray


def _is_scalar(v) -> bool:
    kind = type(v)
    return type(kind) is type and kind in form.SCALARS


def _list(v):
    return list.__len__(v), list.__getitem__(v, _slice)


def _tuple(v):
    return tuple.__len__(v), tuple.__getitem__(v, _slice)


def _set(v):
    return set.__len__(v), list(_islice(set.__iter__(v), SAMPLE))


def _frozenset(v):
    return frozenset.__len__(v), list(_islice(frozenset.__iter__(v), SAMPLE))


def _dict(v):
    return dict.__len__(v), [*_islice(dict.keys(v), SAMPLE), *_islice(dict.values(v), SAMPLE)]


def _bytearray(v):
    return bytearray.__len__(v), [bytes(bytearray.__getitem__(v, _slice))]


def _array(v):
    """An ndarray: its shape, type and the first numbers; of more than SAMPLE, some."""
    size = v.size
    sample = [v.dtype.str, "x".join(map(str, v.shape))]
    if v.dtype.kind in "biufc" and v.flags.c_contiguous:
        sample.append(v.reshape(-1)[:: max(1, size // SAMPLE)][:SAMPLE].tobytes())
    return len(v) if v.ndim else None, sample


def _frame(v):
    """A DataFrame: the identity of its columns and blocks stands for what is in them."""
    manager = object.__getattribute__(v, "_mgr")
    return len(manager.axes[-1]), [*manager.axes, *manager.blocks][: 2 * SAMPLE]


class Attributes:
    """Peeks at what instances of a class of the user's hold in __dict__ and __slots__."""

    __slots__ = ("of_dict", "members")

    def __init__(self, kind: type):
        self.of_dict, self.members = None, []
        for base in _mro(kind):
            for name, member in list(type.__dict__["__dict__"].__get__(base).items()):
                if type(member) is types.GetSetDescriptorType and name == "__dict__":
                    self.of_dict = self.of_dict or member.__get__
                elif type(member) is types.MemberDescriptorType:
                    self.members.append((name, member))

    def __call__(self, v):
        held = self.of_dict(v) if self.of_dict else {}
        length = dict.__len__(held)
        names, items = [*_islice(dict.keys(held), SAMPLE)], [*_islice(dict.values(held), SAMPLE)]
        for name, member in self.members:
            try:
                item = member.__get__(v)
            except AttributeError:
                continue
            length += 1
            if len(names) < SAMPLE:
                items.append(item)
                names.append(name)
        return length, names + items


_BASES = (
    (list, form.ITEMS, _list),
    (tuple, form.ITEMS, _tuple),
    (dict, form.PAIRS, _dict),
    (set, form.ITEMS, _set),
    (frozenset, form.ITEMS, _frozenset),
    (bytearray, form.ITEMS, _bytearray),
)
_IN_C = {_list: 1, _tuple: 2, _dict: 3, _set: 4, _frozenset: 4, _frame: 6, _array: 7}  # what recorder_fast.h calls them


def _own_module(kind: type) -> str:
    try:
        module = _module_of(kind)
    except AttributeError:
        return ""
    return module if type(module) is str else ""


def label(kind: type, user: str = "__main__") -> str:
    """The class's name, with its module where that is neither builtins nor the user's."""
    module = _own_module(kind)
    name = str.__str__(_qualname(kind))
    return name if module in ("builtins", user, "") else f"{module}.{name}"


class Objects:
    """The objects that recorded variables hold. user is the __module__ of the user's classes."""

    def __init__(self, writer: form.Writer, user: str):
        self._writer = writer
        self._user = user
        self._readers: dict = {}  # by id of the class, which the reader keeps
        self._count = self._numbers = 0
        self._free: list = []  # numbers of objects that were forgotten: recordings of loops are the shorter for it
        self.unheld: list = []  # what nothing holds, unless the next line does
        self.table: dict = {}  # by address
        self.most = 0  # objects that may be known at a time
        self.tick = 0  # of the event: an object is looked at once in each

    @staticmethod
    def full() -> None:
        raise Full

    def next(self) -> None:
        """Another event begins."""
        self.tick += 1

    def value(self, v, depth: int = 0) -> tuple[bytes, Entry | None]:
        """The value's bytes, behind the records that they need; for an object, its entry."""
        data = form.scalar(v)
        if data is not None:
            return data, None
        entry = self.table.get(id(v))
        if entry is None or entry.kind != id(type(v)):
            entry = self._new(v, depth)
        elif depth < entry.depth and entry.reader.peek is not None:
            entry.depth = depth
            self._look(v, entry, again=True)
        else:
            self.check(v, entry, depth)
        return b"@" + n(entry.number), entry

    def _new(self, v, depth: int) -> Entry:
        entry = Entry()
        self._count += 1
        if self._numbers - len(self._free) >= self.most:
            self.full()
        if not self._free:
            self._numbers += 1
        entry.number, entry.serial = self._free.pop() if self._free else self._numbers, self._count
        entry.address, entry.kind = id(v), id(type(v))
        entry.version, entry.held, entry.depth, entry.seen = 0, 0, depth, self.tick
        entry.length, entry.token, entry.body, entry.children = None, [], b"", []
        entry.reader = self._reader(type(v))
        self.table[entry.address] = entry
        self._look(v, entry)
        return entry

    def check(self, v, entry: Entry, depth: int = 0) -> None:
        """Records what has changed in an object, and in what it holds."""
        reader = entry.reader
        peek = reader.peek
        if peek is None or entry.seen == self.tick or depth >= DEPTH:
            return
        entry.seen = self.tick
        try:
            length, sample = peek(v)
        except Exception:
            return  # another thread changes it just now: at the next step
        if length != entry.length or (sample if reader.made else list(map(id, sample))) != entry.token:
            self._look(v, entry)
        elif entry.children:
            table = self.table
            for item in sample:
                child = table.get(id(item))
                if child is not None and child.reader.peek is not None and child.kind == id(type(item)):
                    self.check(item, child, depth + 1)

    def _look(self, v, entry: Entry, again: bool = False) -> None:
        """Reads an object, and records it as new or changed."""
        reader, children, parts = entry.reader, [], []
        exactness, length, sample = form.PART_UNREAD, None, []
        if reader.peek is not None and entry.depth < DEPTH:
            try:
                length, sample = reader.peek(v)
                exactness = form.EXACT
            except Exception:
                length, sample = None, []
        entry.length, entry.token = length, sample if reader.made else list(map(id, sample))
        entry.kept = [item for item in sample if _is_scalar(item)]
        shape = reader.form
        if exactness == form.EXACT:
            shown, exactness = self._shown(v, reader, length, sample)
        else:
            shown, shape = [], form.OPAQUE
        for item in shown:
            data, child = self.value(item, entry.depth + 1)
            parts.append(data)
            if child is not None:
                child.held += 1
                children.append(child)
        before, entry.children = entry.children, children
        for child in before:
            self.drop(child)
        body = n(exactness) + n(0 if length is None else length + 1) + n(shape) + n(len(parts)) + b"".join(parts)
        if body == entry.body and (again or exactness == form.EXACT):
            return  # equal scalars in the place of others
        entry.body = body
        entry.version += not again
        out = self._writer.out
        if not again and entry.version == 1:
            out += n(form.OBJECT) + n(entry.number) + reader.name + b"\x01" + body
        else:
            out += n(form.MUTATE) + n(entry.number) + n(entry.version if again else 0) + body

    @staticmethod
    def _shown(v, reader: Reader, length, sample: list) -> tuple[list, int]:
        """What is recorded of a sample, and how exact that is."""
        if reader.peek is _frame:
            return _columns(v)
        if reader.peek is _array:
            shown = ["dtype", str(v.dtype), "shape", sample[1]]
            if len(sample) == 2:
                return shown, form.PART_UNREAD
            for i, item in enumerate(v.reshape(-1)[:SHOWN].tolist()):
                shown += [i, item]
            return shown, form.EXACT if v.size <= SHOWN else form.TRUNCATED if v.size <= SAMPLE else form.SAMPLED
        if reader.peek is _bytearray:
            return sample, form.EXACT if length <= SAMPLE else form.SAMPLED
        exactness = form.EXACT if length <= SHOWN else form.TRUNCATED if length <= SAMPLE else form.SAMPLED
        if reader.form == form.ITEMS:
            return list(sample[:SHOWN]), exactness
        half = len(sample) // 2
        return [x for pair in zip(sample[: min(half, SHOWN)], sample[half:]) for x in pair], exactness

    def _reader(self, kind: type) -> Reader:
        reader = self._readers.get(id(kind))
        if reader is None:
            reader = self._readers[id(kind)] = self._make(kind)
        return reader

    def _make(self, kind: type) -> Reader:
        module = _own_module(kind)
        name = self._writer.name(label(kind, self._user))
        for library, classname, shape, peek in (("numpy", "ndarray", form.TABLE, _array), ("pandas", "DataFrame", form.TABLE, _frame)):
            loaded = _modules.get(library)
            if type(loaded) is types.ModuleType and vars(loaded).get(classname) is kind:
                return Reader(kind, name, shape, peek)
        for base, shape, peek in _BASES:
            if any(b is base for b in _mro(kind)):
                return Reader(kind, name, shape, peek)
        if module == self._user and not any(b is type for b in _mro(kind)):
            return Reader(kind, name, form.ATTRIBUTES, Attributes(kind))
        return Reader(kind, name, form.OPAQUE, None)

    def described(self, kind: type) -> tuple:
        """A class's reader, for the extension: with how it reads the objects itself."""
        reader = self._reader(kind)
        peek = reader.peek
        slots = peek if type(peek) is Attributes else None
        how = 0 if peek is None else 5 if slots else _IN_C.get(peek, 8)
        return reader, reader.name, reader.form, how, peek, tuple(slots.members) if slots else (), bool(slots and slots.of_dict)

    def drop(self, entry: Entry) -> None:
        """One holder less; without any the object is forgotten, unless the next line holds it."""
        entry.held -= 1
        if entry.held <= 0:
            self.unheld.append(entry)

    def idle(self, entry: Entry) -> None:
        if entry.held <= 0:
            self.unheld.append(entry)

    def settle(self) -> None:
        """Forgets the objects that nothing holds."""
        waiting = self.unheld
        while waiting:
            entry: Entry = waiting.pop()
            if entry.held > 0 or entry.version < 0:
                continue
            if self.table.get(entry.address) is entry:
                del self.table[entry.address]
            self._writer.out += n(form.FREE) + n(entry.number)
            self._free.append(entry.number)
            entry.version = -1
            for child in entry.children:
                child.held -= 1
                waiting.append(child)
            entry.children = []

    def restate(self, out: bytearray, live: list[Entry]) -> None:
        """Writes what is live as new."""
        waiting, seen = list(live), set()
        while waiting:
            entry = waiting.pop()
            if entry.number in seen:
                continue
            seen.add(entry.number)
            out += n(form.OBJECT) + n(entry.number) + entry.reader.name + n(entry.version) + entry.body
            waiting.extend(entry.children)


def _columns(v) -> tuple[list, int]:
    """A DataFrame's first columns and their types. Its cells are not looked at."""
    manager = object.__getattribute__(v, "_mgr")
    shown: list = []
    columns = manager.axes[0]
    for i, column in enumerate((columns if len(columns) <= SHOWN else columns[:SHOWN]).tolist()):
        shown += [column if form.scalar(column) is not None else "?", str(manager.blocks[manager.blknos[i]].dtype)]
    return shown, form.SAMPLED
