"""The trace of a run: which values its expressions had, in which order, and what assigned or changed what.

    trace = Trace(source, path)     # path is the asked value, such as rows[3]["x"]
    tree = trace.instrument(tree)   # calls HOOK with the value of each expression
    ...                             # run it
    trace.end(names)                # where the value came from, as sandbox.Cell

It keeps a copy of each table, and holds no object of the program's own classes. It calls no code of the program, and
reads no clock.
"""

import ast
import builtins
import sys
import threading
import types
import typing
import weakref

import cell_paths
import cell_values
import cell_walk
import fact_probes
import fact_tables
import fact_values
import rows
from cell_instrument import CHANGING, Program
from cell_values import (
    CONTAINERS,
    HOOK,
    Event,
    Expression,
    expressions_of,
    is_array,
    is_dict,
    is_series,
    is_simple,
    is_table,
)

MAX_EVENTS = 120_000  # of a run
MAX_KEPT = 128 << 20  # bytes of copies of arrays and lists

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

_INNER_CODE = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}

_frame = sys._getframe


def unhooked(node: ast.expr) -> ast.expr:
    """Returns an expression without the calls of the hooks around it."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (HOOK, fact_probes.HOOK):
        node = node.args[1]
    return node


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


class Trace:
    """The trace of one run."""

    def __init__(self, source: str, path: str):
        self.path = path
        self._program = Program(source)
        self._expressions, self.wild = self._program.expressions, self._program.wild
        self.defined = self._program.defined
        self.things: dict[int, Thing] = {}
        self.attributes: dict[tuple[int, str], list[Event]] = {}  # assignments to attributes, by the object's ID
        self.bound: dict[int, dict[str, Event]] = {}  # variables by frame; frame 0 is the module
        self._last: dict[int, dict[int, Event]] = {}  # the last event of each expression, by frame
        self._elements: dict[int, list[Event]] = {}  # of comprehensions that run
        self._returned: dict[str, Event] = {}
        self._pending: Event | None = None  # an augmented assignment whose effect comes next
        self._n = self._events = self._kept_bytes = self._changed_at = 0
        self.full = ""  # why the trace has ended
        self._lock = threading.Lock()

    def instrument(self, tree: ast.Module) -> ast.Module:
        """Returns the tree with calls of the hook, which begins to work."""
        setattr(builtins, HOOK, self._hook)
        self._program.instrument(tree)
        self.full = self._program.full
        return tree

    def end(self, names: dict) -> dict:
        """Ends the work of the hook. Returns the asked value of a namespace, and what it was made from."""
        setattr(builtins, HOOK, _no_hook)
        with self._lock:
            self._finish()
            try:
                return cell_walk.answer(self, names)
            except cell_paths.NoValue as error:
                return {"value": "", "from": [], "ends": str(error)}
            except Exception as error:  # of numpy or pandas
                return {"value": "", "from": [], "ends": f"not followed: {type(error).__name__}"}
            finally:
                self.things, self._last, self.bound = {}, {}, {}
                self._expressions.clear()

    # -- while the code runs

    def _hook(self, number: int, value):
        expression = self._expressions.get(number)
        if expression is None or expression.is_idle or self.full or not self._lock.acquire(False):
            return value
        try:
            self._see(expression, value, _frame(1))
        except Exception as error:  # of numpy or pandas, or at the limit of the recursion
            self.full = f"a value could not be read ({type(error).__name__})"
        finally:
            self._lock.release()
        return value

    def _see(self, expression: Expression, value, frame: types.FrameType) -> None:
        self._finish()
        self._n += 1
        expression.times += 1
        if expression.times > cell_walk.MAX_TIMES:
            self._skip(expression, value, _place(frame))
            return
        self._events += 1
        if self._events > MAX_EVENTS:
            self.full = f"the run evaluated more than {MAX_EVENTS} expressions"
            return
        place = _place(frame)
        if expression.kind in ("turn", "begin"):
            self._begin(expression, value, place, frame)
            return
        event = Event(self._n, expression)
        last = self._last.setdefault(place, {})
        event.parts = [last.pop(each.number, None) if isinstance(each, Expression) else None
                       for _, each in expression.parts]  # fmt: skip
        event.key = self._operands(place, expression.parts)
        self._keep(event, value)
        node = expression.node
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for n, (role, each) in enumerate(expression.parts):
                if role in ("element", "key") and isinstance(each, Expression):
                    event.parts[n] = None
                    if isinstance(node, ast.GeneratorExp):  # its elements come later
                        event.turns = self._elements[each.number] = []
                    elif role == "element":
                        event.turns = self._elements.pop(each.number, [])
                    else:
                        event.keys = self._elements.pop(each.number, [])
        if expression.is_element:
            self._elements.setdefault(expression.number, []).append(event)
        if expression.kind == "name":
            self._load(event, value, place, frame, expression.alias or node.id)
        elif expression.kind == "augmented name":
            thing = self.thing_of(value)
            left = event.parts[0]
            if thing is not None and left is not None and left.thing is thing:
                event.is_change = True
                self._change(thing, event)
            else:
                self._made(event, value)
        else:
            if isinstance(node, ast.Call) or isinstance(node, ast.Await):
                self._called(event, value, node if isinstance(node, ast.Call) else node.value)
            self._made(event, value)
        if expression.returns:
            self._returned[expression.returns] = event
        for name, path in expression.binds:
            bound = event if not path else self._unpacked(event, value, path)
            self.bound.setdefault(place, {})[name] = bound
        last[expression.number] = event
        for store in expression.stores:
            self._stored(store, place)

    def assigned(self, number: int, name: str, n: int) -> "Event | None":
        """Returns the last assignment to an attribute of the object with an ID, before an event."""
        return next((e for e in reversed(self.attributes.get((number, name), [])) if e.n < n), None)

    def _part(self, place: int, each) -> "Event | None":
        return self._last.get(place, {}).get(each.number) if isinstance(each, Expression) else None

    def _operands(self, place: int, parts: list) -> "dict | None":
        """Returns the events of the expressions in subscripts."""
        found = {}
        for role, each in parts:
            if role == "index":
                for expression in expressions_of(each):
                    found[expression.number] = self._last.get(place, {}).pop(expression.number, None)
        return found or None

    def _finish(self) -> None:
        """Reads what the augmented assignment to an element has stored."""
        event, self._pending = self._pending, None
        if event is not None:
            container: typing.Any = event.thing.ref() if event.thing is not None else None
            if type(container) in CONTAINERS:
                try:
                    event.value = fact_values.known(container[cell_walk.key_of(event)])
                except Exception:
                    pass

    def thing_of(self, value) -> "Thing | None":
        """Returns the known thing that a value is."""
        thing = self.things.get(id(value))
        return thing if thing is not None and thing.ref() is value else None

    def _made(self, event: Event, value) -> None:
        """Notes the event that made a list, dict, array or table, unless it was there before."""
        if is_simple(value):
            return
        thing = self.thing_of(value)
        if thing is None and (type(value) in CONTAINERS or is_table(value)):
            if type(value) not in CONTAINERS or self._may_hold(value):
                thing = self.things[id(value)] = Thing(value, is_weak=event.value is None)
                thing.history.append(event)
        event.thing = thing

    def _may_hold(self, value) -> bool:
        return type(value) is rows.Rows or fact_values.known(value) is not fact_values.OPAQUE

    def _keep(self, event: Event, value) -> None:
        """Keeps the value of an event: scalars as they are, tables as copies, lists as copies if they are short."""
        if is_simple(value):
            event.value = value
        elif is_table(value):
            thing = self.thing_of(value)
            if thing is not None and thing.kept_at >= self._changed_at and is_array(value):
                event.value = thing.kept
                return
            event.value = self._copy(value, event.expression.node)
            if thing is not None:
                thing.kept, thing.kept_at = event.value, self._n
        elif type(value) in CONTAINERS:
            event.container = True
            thing = self.thing_of(value)
            if event.expression.is_receiver:
                event.size = len(value)
                return
            if thing is not None and thing.kept is not None:
                event.value, event.size = thing.kept, len(value)
                return
            event.size = len(value)
            if self._kept_bytes + 16 * len(value) > MAX_KEPT or not self._may_hold(value):
                return
            self._kept_bytes += 16 * len(value)
            event.value = dict(value) if is_dict(value) else tuple(value) if type(value) is tuple else list(value)
            if thing is not None:
                thing.kept, thing.kept_at = event.value, self._n
        else:
            event.value = fact_values.known(value)
            if event.value is fact_values.OPAQUE:
                event.size = id(value)

    def _copy(self, value, node):
        if not is_array(value):  # a view of a table needs no space of its own
            is_new = not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not is_series(value)
            return cell_walk.copy_of(value, self, is_new=is_new and self.thing_of(value) is None)
        return value.copy() if self.count_bytes(value.nbytes) else None

    def count_bytes(self, size: int) -> bool:
        """Counts the bytes of a copy. It returns False if there is no space for it."""
        if self._kept_bytes + size > MAX_KEPT:
            return False
        self._kept_bytes += size
        return True

    def _load(self, event: Event, value, place: int, frame, name: str) -> None:
        event.thing = None if is_simple(value) else self.thing_of(value)
        if event.thing is None and not is_simple(value) and (type(value) in CONTAINERS or is_table(value)):
            self._made(event, value)
            event.is_first = True
        if name in self.wild:
            return
        known = self.bound.get(place, {}).get(name)
        at: typing.Any = frame
        while known is None and at is not None and at.f_code.co_name in _INNER_CODE:
            at = at.f_back
            if at is not None:
                known = self.bound.get(_place(at), {}).get(name)
        if known is None:
            known = self.bound.get(0, {}).get(name)
        if known is not None and (
            known.value is value or known.thing is not None and known.thing is event.thing or known.size == id(value)
        ):
            event.source = known

    def _unpacked(self, event: Event, value, path: tuple) -> Event:
        """Returns an event for a part of a value that is assigned to several variables."""
        part = Event(event.n, event.expression)
        part.kind, part.path, part.source = "part", path, event
        try:
            for n in path:
                if type(value) not in (tuple, list) and not is_array(value):
                    part.value = fact_values.OPAQUE
                    return part
                value = value[n]
        except Exception:
            return part
        self._keep(part, value)
        self._made(part, value)
        return part

    def _begin(self, expression: Expression, value, place: int, frame) -> None:
        """Notes the variables of a loop at the begin of a turn, or the parameters at the begin of a call."""
        source, turn = None, 0
        call: list = []
        if expression.kind == "turn":
            each = expression.parts[0][1]
            source = each.latest if isinstance(each, Expression) else None
            if source is not None:
                turn = source.turn
                source.turn += 1
        else:
            call = self._caller(expression, frame)
            self.bound.pop(place, None)  # of a frame that has ended, and had the same ID
            self._last.pop(place, None)
        for n, (name, path) in enumerate(expression.binds):
            event = Event(self._n, expression)
            event.kind, event.path, event.turn = expression.kind, path, turn
            event.source = source if expression.kind == "turn" else call[n] if n < len(call) else None
            self._keep(event, value[n])
            event.thing = self.thing_of(value[n])
            if event.thing is None:
                self._made(event, value[n])
            name = expression.aliases.get(name, name)
            self.bound.setdefault(place, {})[name] = event

    def _caller(self, expression: Expression, frame) -> list:
        """Returns the events of the arguments with which a function was called, if only one call can be the one."""
        back = frame.f_back
        while back is not None and HOOK not in back.f_builtins:
            back = back.f_back
        if back is None:
            return []
        place = _place(back)
        found = []
        for each in expression.calls if expression.calls is not None else self._calls_of(expression):
            if each.node.lineno <= back.f_lineno <= (each.node.end_lineno or each.node.lineno):
                given = [self._given(place, each, part) for role, part in each.parts if role == "argument"]
                by_name = {role: self._given(place, each, part) for role, part in each.parts}
                names = [name for name, _ in expression.binds]
                given = [*([None] if expression.path else []), *given]
                found.append([*given, *(by_name.get(name) for name in names[len(given) :])])
        return found[0] if len(found) == 1 else []

    def _given(self, place: int, call: Expression, part) -> "Event | None":
        """Returns the event of an argument. That of a constant is the call's."""
        if not isinstance(part, tuple) or part[0] != "const":
            return self._part(place, part)
        latest, event = call.latest, Event(self._n, call)
        call.latest = latest
        event.kind, event.value = "literal", part[1]
        return event

    def _calls_of(self, expression: Expression) -> list:
        expression.calls = [
            each for each in self._expressions.values()
            if isinstance(each.node, ast.Call) and (
                each.node.func.id == (expression.path[0] if expression.path else expression.returns)
                if isinstance(each.node.func, ast.Name)
                else expression.path and getattr(each.node.func, "attr", "") == expression.returns
            ) and (expression.returns == "__init__" or not (expression.path and isinstance(each.node.func, ast.Name)))
        ]  # fmt: skip
        return expression.calls

    # -- changes

    def _change(self, thing: Thing, event: Event) -> None:
        thing.history.append(event)
        event.thing = thing
        self._changed_at = self._n + 1
        thing.kept = None

    def _called(self, event: Event, value, node) -> None:
        """Notes what a call may have changed."""
        receiver = event.part("receiver")
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        is_own = isinstance(node.func, ast.Name) or receiver is not None and receiver.value is fact_values.OPAQUE
        if is_own and name in self.defined:
            returned = self._returned.pop(name, None)
            if (
                returned is not None
                and returned.n > max([part.n for part in event.parts if part], default=0)
                and (
                    returned.value is value
                    or returned.thing is not None
                    and returned.thing is self.thing_of(value)
                    or returned.size == id(value)
                )
            ):
                event.source = returned
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
                    change = Event(self._n, event.expression)
                    change.parts, change.key, change.is_change, change.before = event.parts, None, True, receiver.size
                    change.value = None
                    event.is_change = False
                self._change(receiver.thing, change)
                if type(target) in CONTAINERS:
                    change.size = len(target)
                elif is_table(target):
                    change.after = self._copy(target, node)
        is_pure = event.expression.is_pure
        if is_pure is None:
            is_pure = event.expression.is_pure = self._is_pure(node, name)
        for (role, _), part in zip(event.expression.parts, event.parts):
            if part is None or part.thing is None or role == "receiver" or is_pure and role != "out":
                continue
            barrier = Event(self._n, event.expression)
            barrier.kind = "barrier"
            self._change(part.thing, barrier)

    def _is_pure(self, node: ast.Call, name: str) -> bool:
        """Tells whether a call changes none of its arguments, as far as its name tells."""
        if isinstance(node.func, ast.Name):
            return name in _PURE or name in self.defined or name[:1].isupper()  # a class
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = unhooked(root.value)
        rooted = root.id if isinstance(root, ast.Name) else ""
        return rooted not in _IMPURE_ROOTS and name not in _IMPURE_NAMES

    def _skip(self, expression: Expression, value, place: int) -> None:
        """Notes that an expression was evaluated too often to keep its values: what it set or may have changed is not
        followed any more."""
        bound = self.bound.get(place, {})
        for name, _ in expression.binds:
            bound.pop(expression.aliases.get(name, name), None)
        self._returned.pop(expression.returns, None)
        self._last.get(place, {}).pop(expression.number, None)
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
        thing = self.thing_of(value) if may_change else None
        expression.is_idle = not (may_change or expression.binds or expression.returns or expression.stores)
        if thing is None:
            if may_change and role == "container":
                self.attributes.pop((id(value), getattr(parent.node, "attr", "")), None)
            return
        if thing.history[-1].kind != "barrier" or thing.history[-1].expression is not parent:
            barrier = Event(self._n, parent)
            barrier.kind = "barrier"
            thing.history.append(barrier)
        thing.history[-1].n = self._n
        thing.kept, self._changed_at = None, self._n + 1

    def _stored(self, store: Expression, place: int) -> None:
        """Notes an assignment to an element, which comes next."""
        container, value = self._part(place, store.parts[0][1]), self._part(place, store.parts[1][1])
        if container is None:
            return
        self._n += 1
        event = Event(self._n, store)
        event.parts = [container, value]
        event.key = {e.number: self._part(place, e) for e in expressions_of(store.key)}
        event.is_change = True
        if value is not None:
            event.value = value.value
        if isinstance(store.node, ast.Attribute) and (container.thing is None or container.size):
            if container.size and container.thing is None:
                if store.kind == "augmented":
                    self._augment(event, container.size, store)
                self.attributes.setdefault((container.size, store.node.attr), []).append(event)
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
        self._change(thing, event)

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


def _place(frame: types.FrameType) -> int:
    """Returns the number of the variables of a frame: 0 for the module."""
    return 0 if frame.f_code.co_name == "<module>" else id(frame)


def _no_hook(number: int, value):
    """Serves functions that run after the end, for example at exit."""
    return value
