"""The variables of a run by frame, and the events behind them: what was bound to a name, given to a function, or
returned by it.

    frames = Frames(program, things)
    frames.add(place, event, value) # the event of an expression, and of the variables that are bound to its value
    frames.load(event, ...)         # event.source is the event that was bound to the name
    frames.begin(...)               # binds the variables of a loop, or the parameters of a call
    frames.find_result(event, ...)  # event.source is the event that a function of the program returned

A place is the number of a frame; place 0 is the module.
"""

import ast
import types
import typing

import fact_values
from cell_instrument import Program
from cell_things import Things
from cell_values import CONTAINERS, HOOK, Event, Expression, expressions_of, is_array, is_simple, is_table

_INNER_CODE = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


def place_of(frame: types.FrameType) -> int:
    """Returns the number of the variables of a frame: 0 for the module."""
    return 0 if frame.f_code.co_name == "<module>" else id(frame)


class Frames:
    """The frames of one run."""

    def __init__(self, program: Program, things: Things) -> None:
        self._program, self._things = program, things
        self._bound: dict[int, dict[str, Event]] = {}  # variables by frame
        self._last: dict[int, dict[int, Event]] = {}  # the last event of each expression, by frame
        self._returned: dict[str, Event] = {}  # by the name of the function

    def clear(self) -> None:
        """Forgets all events."""
        self._bound, self._last = {}, {}

    def add(self, place: int, event: Event, value) -> None:
        """Notes an event, and binds the variables that its expression is assigned to."""
        expression = event.expression
        if expression.returns:
            self._returned[expression.returns] = event
        for name, path in expression.binds:
            bound = event if not path else self._unpacked(event, value, path)
            self._bound.setdefault(place, {})[name] = bound
        self._last.setdefault(place, {})[expression.number] = event

    def skip(self, place: int, expression: Expression) -> None:
        """Forgets what an expression has set, after an evaluation without an event."""
        bound = self._bound.get(place, {})
        for name, _ in expression.binds:
            bound.pop(expression.aliases.get(name, name), None)
        self._returned.pop(expression.returns, None)
        self._last.get(place, {}).pop(expression.number, None)

    def take_parts(self, place: int, expression: Expression) -> list:
        """Returns the last events of the parts of an expression, which no other expression gets."""
        last = self._last.get(place, {})
        return [last.pop(each.number, None) if isinstance(each, Expression) else None for _, each in expression.parts]

    def take_keys(self, place: int, parts: list) -> "dict | None":
        """Returns the last events of the expressions in subscripts, which no other expression gets."""
        found = {}
        for role, each in parts:
            if role == "index":
                for expression in expressions_of(each):
                    found[expression.number] = self._last.get(place, {}).pop(expression.number, None)
        return found or None

    def part(self, place: int, each) -> "Event | None":
        """Returns the last event of a part of an expression."""
        return self._last.get(place, {}).get(each.number) if isinstance(each, Expression) else None

    def load(self, event: Event, value, place: int, frame, name: str) -> None:
        """Finds the event that was bound to a variable that is read, if the value is still the same."""
        event.thing = None if is_simple(value) else self._things.of(value)
        if event.thing is None and not is_simple(value) and (type(value) in CONTAINERS or is_table(value)):
            self._things.made(event, value)
            event.is_first = True
        if name in self._program.wild:
            return
        known = self._bound.get(place, {}).get(name)
        at: typing.Any = frame
        while known is None and at is not None and at.f_code.co_name in _INNER_CODE:
            at = at.f_back
            if at is not None:
                known = self._bound.get(place_of(at), {}).get(name)
        if known is None:
            known = self._bound.get(0, {}).get(name)
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
        self._things.keep(part, value)
        self._things.made(part, value)
        return part

    def begin(self, n: int, expression: Expression, value, place: int, frame) -> None:
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
            call = self._caller(n, expression, frame)
            self._bound.pop(place, None)  # of a frame that has ended, and had the same ID
            self._last.pop(place, None)
        for k, (name, path) in enumerate(expression.binds):
            event = Event(n, expression)
            event.kind, event.path, event.turn = expression.kind, path, turn
            event.source = source if expression.kind == "turn" else call[k] if k < len(call) else None
            self._things.keep(event, value[k])
            event.thing = self._things.of(value[k])
            if event.thing is None:
                self._things.made(event, value[k])
            name = expression.aliases.get(name, name)
            self._bound.setdefault(place, {})[name] = event

    def _caller(self, n: int, expression: Expression, frame) -> list:
        """Returns the events of the arguments with which a function was called, if only one call can be the one."""
        back = frame.f_back
        while back is not None and HOOK not in back.f_builtins:
            back = back.f_back
        if back is None:
            return []
        place = place_of(back)
        found = []
        for each in expression.calls if expression.calls is not None else self._calls_of(expression):
            if each.node.lineno <= back.f_lineno <= (each.node.end_lineno or each.node.lineno):
                given = [self._given(n, place, each, part) for role, part in each.parts if role == "argument"]
                by_name = {role: self._given(n, place, each, part) for role, part in each.parts}
                names = [name for name, _ in expression.binds]
                given = [*([None] if expression.path else []), *given]
                found.append([*given, *(by_name.get(name) for name in names[len(given) :])])
        return found[0] if len(found) == 1 else []

    def _given(self, n: int, place: int, call: Expression, part) -> "Event | None":
        """Returns the event of an argument. That of a constant is the call's."""
        if not isinstance(part, tuple) or part[0] != "const":
            return self.part(place, part)
        latest, event = call.latest, Event(n, call)
        call.latest = latest
        event.kind, event.value = "literal", part[1]
        return event

    def _calls_of(self, expression: Expression) -> list:
        expression.calls = [
            each for each in self._program.expressions.values()
            if isinstance(each.node, ast.Call) and (
                each.node.func.id == (expression.path[0] if expression.path else expression.returns)
                if isinstance(each.node.func, ast.Name)
                else expression.path and getattr(each.node.func, "attr", "") == expression.returns
            ) and (expression.returns == "__init__" or not (expression.path and isinstance(each.node.func, ast.Name)))
        ]  # fmt: skip
        return expression.calls

    def find_result(self, event: Event, name: str, value) -> None:
        """Finds the event that a function of the program returned, if it is the value of a call."""
        returned = self._returned.pop(name, None)
        if (
            returned is not None
            and returned.n > max([part.n for part in event.parts if part], default=0)
            and (
                returned.value is value
                or returned.thing is not None
                and returned.thing is self._things.of(value)
                or returned.size == id(value)
            )
        ):
            event.source = returned
