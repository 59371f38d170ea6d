"""The changes of lists, dicts, tables and objects by the statements of a run.

    changes = Changes(program, things, frames)
    changes.call(event, value, node)    # what a call may have changed, as far as its name tells
    changes.store(event)                # an assignment to an element or an attribute
    changes.finish()                    # reads what the last augmented assignment has stored
    changes.assigned(id(thing), "name", n)  # the last assignment to an attribute

Where a call may have changed a value in an unknown way, the history of the value gets a barrier.
"""

import ast
import typing

import cell_values
import fact_probes
import fact_tables
import fact_values
from cell_frames import Frames
from cell_instrument import CHANGING, Program
from cell_things import Things
from cell_values import CONTAINERS, HOOK, Event, Expression, is_array, is_table

# Functions that do not change their arguments. Methods of values change their receiver at most.
_PURE = set(
    "abs all any bool bytes dict divmod enumerate filter float format frozenset getattr hasattr hash "
    "hex id int isinstance "
    "issubclass iter len list map max min next oct ord pow print range repr reversed round set slice sorted str sum "
    "tuple type zip db_query db_frame display Counter OrderedDict defaultdict Decimal Fraction date datetime timedelta "
    "sqrt floor ceil mean median".split()
)
_IMPURE_ROOTS = {"random", "heapq", "bisect", "shuffle"}  # of names of modules and functions
_IMPURE_NAMES = {"shuffle", "copyto", "place", "putmask", "put", "put_along_axis", "fill_diagonal", "at", "insort"}


class Changes:
    """The changes of one run."""

    def __init__(self, program: Program, things: Things, frames: Frames) -> None:
        self._program, self._things, self._frames = program, things, frames
        self._attributes: dict[tuple[int, str], list[Event]] = {}  # assignments to attributes, by the object's ID
        self._pending: Event | None = None  # an augmented assignment whose effect comes next

    def call(self, event: Event, value, node) -> None:
        """Notes what a call may have changed, and what it returned, if its function is the program's own."""
        receiver = event.part("receiver")
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_own = isinstance(node.func, ast.Name) or receiver is not None and receiver.value is fact_values.OPAQUE
        if is_own and name in self._program.defined:
            self._frames.find_result(event, name, value)
        if receiver is not None and receiver.thing is not None:
            target = receiver.thing.ref()
            in_place = any(role == "inplace" and each != ("const", False) for role, each in event.expression.parts)
            is_frame_method = is_table(target) and not is_array(target) and name in ("insert", "pop", "update")
            if (
                in_place
                or is_frame_method
                or not is_table(target)
                and name in CHANGING
                or is_array(target)
                and (name in ("sort", "fill", "resize", "put", "itemset", "partition"))
            ):
                event.is_change = True
                event.before = receiver.size
                change = event
                if value is not None:  # the call has a value of its own
                    change = Event(event.n, event.expression)
                    change.parts, change.key, change.is_change, change.before = event.parts, None, True, receiver.size
                    change.value = None
                    event.is_change = False
                self._things.change(receiver.thing, change)
                if type(target) in CONTAINERS:
                    change.size = len(target)
                elif is_table(target):
                    change.after = self._things.copy(target, node)
        is_pure = event.expression.is_pure
        if is_pure is None:
            is_pure = event.expression.is_pure = self._is_pure(node, name)
        for (role, _), part in zip(event.expression.parts, event.parts):
            if part is None or part.thing is None or role == "receiver" or is_pure and role != "out":
                continue
            barrier = Event(event.n, event.expression)
            barrier.kind = "barrier"
            self._things.change(part.thing, barrier)

    def _is_pure(self, node: ast.Call, name: str) -> bool:
        """Tells whether a call changes none of its arguments, as far as its name tells."""
        if isinstance(node.func, ast.Name):
            return name in _PURE or name in self._program.defined or name[:1].isupper()  # a class
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = _unhooked(root.value)
        rooted = root.id if isinstance(root, ast.Name) else ""
        return rooted not in _IMPURE_ROOTS and name not in _IMPURE_NAMES

    def skip(self, expression: Expression, value, n: int) -> None:
        """Notes what may have changed by an evaluation without an event."""
        parent, role = expression.parent
        if parent is None:
            expression.is_idle = not expression.binds and not expression.returns and not expression.stores
            return
        node = parent.node.value if isinstance(parent.node, ast.Await) else parent.node
        if isinstance(node, ast.Call):
            name = fact_tables.called_name(node)
            may_change = role == "receiver" and name in CHANGING or role in ("out", "inplace")
            if not may_change and role != "receiver":
                may_change = not self._is_pure(node, name)
        else:
            may_change = role == "container"
        thing = self._things.of(value) if may_change else None
        expression.is_idle = not (may_change or expression.binds or expression.returns or expression.stores)
        if thing is None:
            if may_change and role == "container":
                self._attributes.pop((id(value), getattr(parent.node, "attr", "")), None)
            return
        self._things.bar(thing, parent, n)

    def store(self, event: Event) -> None:
        """Notes an assignment to an element or attribute, which comes next."""
        store, (container, value) = event.expression, event.parts
        assert container is not None
        event.is_change = True
        if value is not None:
            event.value = value.value
        if isinstance(store.node, ast.Attribute) and (container.thing is None or container.size):
            if container.size and container.thing is None:
                if store.kind == "augmented":
                    self._augment(event, container.size, store)
                self._attributes.setdefault((container.size, store.node.attr), []).append(event)
                return
        behind = container.part("receiver")
        if (
            container.thing is None
            and behind is not None
            and getattr(container.expression.node, "attr", "") in ("loc", "iloc", "at", "iat")
        ):
            thing = behind.thing
        else:
            thing = container.thing
        if thing is None:
            return
        event.before = container.size
        if store.kind == "augmented":
            event.value = None
            self._pending = event
        self._things.change(thing, event)

    def _augment(self, event: Event, number: int, store: Expression) -> None:
        """Computes what an augmented assignment to an attribute gives, from the last value of the attribute."""
        before, value = self.assigned(number, store.node.attr, event.n), event.value
        operation = cell_values.OPERATORS.get(type(store.statement.op))
        event.value = fact_values.OPAQUE
        event.source = before
        if before is None or operation is None or not fact_values.is_scalar(value):
            return
        if fact_values.is_scalar(before.value) and type(before.value) in (int, float, str):
            event.value = operation(before.value, value)

    def assigned(self, number: int, name: str, n: int) -> "Event | None":
        """Returns the last assignment to an attribute of the object with an ID, before an event."""
        return next((e for e in reversed(self._attributes.get((number, name), [])) if e.n < n), None)

    def finish(self) -> None:
        """Reads what the augmented assignment to an element has stored."""
        event, self._pending = self._pending, None
        if event is not None:
            container: typing.Any = event.thing.ref() if event.thing is not None else None
            if type(container) in CONTAINERS:
                try:
                    event.value = fact_values.known(container[event.operand_of(event.expression.key)])
                except Exception:
                    pass


def _unhooked(node: ast.expr) -> ast.expr:
    """Returns an expression without the calls of the hooks around it."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (HOOK, fact_probes.HOOK):
        node = node.args[1]
    return node
