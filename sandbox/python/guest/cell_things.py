"""The lists, dicts, arrays and tables of a run: the events that made and changed them, and copies of their values.

    things = Things()
    things.keep(event, value)   # event.value is a copy, if there is space for it
    things.made(event, value)   # event.thing is the thing; the event made it, unless it was known before
    things.change(thing, event) # event changed it: copies of before are out of date

No object of the program's own classes is held.
"""

import ast
import typing
import weakref

import fact_values
import rows
from cell_values import CONTAINERS, Event, Expression, is_array, is_dict, is_series, is_simple, is_table, pandas

MAX_KEPT = 128 << 20  # bytes of copies of arrays and lists


class Thing:
    """A list, dict, array or table, with the events that made and changed it."""

    __slots__ = ("ref", "history", "kept", "kept_at", "kind")

    def __init__(self, value, *, is_weak: bool = False) -> None:
        self.kind = type(value)
        if is_table(value) and (not is_array(value) or is_weak):  # its copies are kept
            self.ref: typing.Any = weakref.ref(value)
        else:
            self.ref = (lambda held: lambda: held)(value)
        self.history: list[Event] = []
        self.kept: typing.Any = None
        self.kept_at = -1


class Things:
    """The things of one run."""

    def __init__(self) -> None:
        self._things: dict[int, Thing] = {}  # by ID
        self._kept_bytes = self._changed_at = 0

    def all(self) -> typing.Iterable[Thing]:
        """Returns all things."""
        return self._things.values()

    def clear(self) -> None:
        """Forgets all things."""
        self._things = {}

    def of(self, value) -> "Thing | None":
        """Returns the known thing that a value is."""
        thing = self._things.get(id(value))
        return thing if thing is not None and thing.ref() is value else None

    def made(self, event: Event, value) -> None:
        """Notes the event that made a list, dict, array or table, unless it was there before."""
        if is_simple(value):
            return
        thing = self.of(value)
        if thing is None and (type(value) in CONTAINERS or is_table(value)):
            if type(value) not in CONTAINERS or _may_hold(value):
                thing = self._things[id(value)] = Thing(value, is_weak=event.value is None)
                thing.history.append(event)
        event.thing = thing

    def keep(self, event: Event, value) -> None:
        """Keeps the value of an event: scalars as they are, tables as copies, lists as copies if they are short."""
        if is_simple(value):
            event.value = value
        elif is_table(value):
            thing = self.of(value)
            if thing is not None and thing.kept_at >= self._changed_at and is_array(value):
                event.value = thing.kept
                return
            event.value = self.copy(value, event.expression.node)
            if thing is not None:
                thing.kept, thing.kept_at = event.value, event.n
        elif type(value) in CONTAINERS:
            event.container = True
            thing = self.of(value)
            if event.expression.is_receiver:
                event.size = len(value)
                return
            if thing is not None and thing.kept is not None:
                event.value, event.size = thing.kept, len(value)
                return
            event.size = len(value)
            if self._kept_bytes + 16 * len(value) > MAX_KEPT or not _may_hold(value):
                return
            self._kept_bytes += 16 * len(value)
            event.value = dict(value) if is_dict(value) else tuple(value) if type(value) is tuple else list(value)
            if thing is not None:
                thing.kept, thing.kept_at = event.value, event.n
        else:
            event.value = fact_values.known(value)
            if event.value is fact_values.OPAQUE:
                event.size = id(value)

    def copy(self, value, node):
        """Returns a copy of a table, which the given expression gave, or None if there is no space for it."""
        if not is_array(value):  # a view of a table needs no space of its own
            is_new = not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not is_series(value)
            return self._copy_of_pandas(value, is_new=is_new and self.of(value) is None)
        return value.copy() if self._count_bytes(value.nbytes) else None

    def _copy_of_pandas(self, value, *, is_new: bool):
        """Returns a copy of a table that later changes of the table do not change."""
        pd = pandas()
        is_lazy = int(pd.__version__.split(".")[0]) >= 3  # copy on write
        if is_new or not is_lazy:
            if not self._count_bytes(_bytes_of(value)):
                return None
        if is_series(value):
            return value.copy(deep=not is_lazy)
        return pd.DataFrame(value, copy=not is_lazy)

    def _count_bytes(self, size: int) -> bool:
        """Counts the bytes of a copy. It returns False if there is no space for it."""
        if self._kept_bytes + size > MAX_KEPT:
            return False
        self._kept_bytes += size
        return True

    def change(self, thing: Thing, event: Event) -> None:
        """Notes that an event changed a thing."""
        thing.history.append(event)
        event.thing = thing
        self._changed(thing, event.n)

    def bar(self, thing: Thing, expression: Expression, n: int) -> None:
        """Notes that an expression may have changed a thing, which it may do often without a new event."""
        if thing.history[-1].kind != "barrier" or thing.history[-1].expression is not expression:
            barrier = Event(n, expression)
            barrier.kind = "barrier"
            thing.history.append(barrier)
        thing.history[-1].n = n
        self._changed(thing, n)

    def _changed(self, thing: Thing, n: int) -> None:
        thing.kept, self._changed_at = None, n + 1


def _may_hold(value) -> bool:
    return type(value) is rows.Rows or fact_values.known(value) is not fact_values.OPAQUE


def _bytes_of(value) -> int:
    if is_series(value):
        return value.nbytes
    return sum(int(value.iloc[:, n].nbytes) for n in range(value.shape[1]))
