"""From a cell back to the rows and cells that it was made from, along the events of a trace.

Each step is checked: what it computes again must be the cell that it explains. Where that fails, or where an operation
is not known, the answer ends, and says why.
"""

import ast
import heapq
import itertools

import cell_arrays
import cell_calls
import cell_containers
import cell_loops
import cell_paths
import cell_python
import cell_tables
import cell_views
import cell_writes
import fact_effects
import fact_tables
import fact_values
from cell_values import (
    CONTAINERS,
    Cells,
    Ends,
    Event,
    Expression,
    Found,
    Split,
    cell,
    close,
    is_dict,
    is_table,
    text_of,
)

MAX_STEPS = 40  # of an answer
MAX_LOOKS = 3_000  # events that are followed
MAX_SHOWN = 20  # rows and cells of a step
MAX_TIMES = 10_000  # that the trace keeps the values of an expression
MAX_WORK = 40_000_000  # cells of tables that are looked at
MAX_ROWS = 2_000  # of a table that are followed one by one


class Step:
    """What one expression did to the cells, over all its evaluations."""

    def __init__(self, found: Found) -> None:
        self.line, self.code = found.event.expression.line, found.code
        self.what, self.of = found.what, found.of
        self.rows: dict = {}
        self.cells: dict = {}
        self.times = 0
        self._last = found.what

    def add(self, found: Found) -> None:
        """Adds another evaluation."""
        self.times += 1
        self._last = found.what
        self.rows.update(zip(found.rows, found.labels or map(str, found.rows)))
        for each in found.cells:
            self.cells.setdefault((each["row"], each["column"], each["value"], self._turn(each)), each)

    def _turn(self, cell: dict) -> int:
        return 0 if cell["row"] else len(self.cells)  # equal values of several turns are several

    def as_dict(self) -> dict:
        """Returns the step as sandbox.CellStep."""
        rows = sorted(self.rows)
        return {
            "line": self.line,
            "code": self.code,
            "what": self.what if self._last == self.what else f"{self.what}; before: {self._last}",
            "rows": rows[:MAX_SHOWN],
            "total_rows": len(rows),
            "of": self.of or 0,
            "cells": list(itertools.islice(self.cells.values(), MAX_SHOWN)),
            "total_cells": len(self.cells),
            "times": self.times,
        }


class Walk:
    """Follows the cells of an answer."""

    def __init__(self, trace) -> None:
        self.trace = trace
        self.steps: dict = {}
        self.ends: dict[str, None] = {}
        self._queue: list = []
        self._seen: set = set()
        self._count = itertools.count()
        self._looks = self._work = 0

    def add(self, event: "Event | None", selector) -> None:
        """Queues cells of the value of an event."""
        if event is None:
            return
        key = (id(event), selector.key() if isinstance(selector, Cells) else _hashable(selector))
        if selector == () and event.container:  # its elements are followed on their own
            return
        if key not in self._seen:
            self._seen.add(key)
            heapq.heappush(self._queue, (-event.n, next(self._count), event, selector))

    def run(self) -> None:
        """Follows the cells until nothing is left, or the answer is long."""
        while self._queue:
            _, _, event, selector = heapq.heappop(self._queue)
            self._looks += 1
            if self._looks > MAX_LOOKS or len(self.steps) >= MAX_STEPS:
                self._end(event, "the steps before are too many")
                return
            try:
                self._follow(event, selector)
            except Ends as error:
                self._end(event, str(error))
            except cell_paths.NoValue as error:
                self._end(event, str(error))
            except Exception as error:  # of numpy or pandas
                self._end(event, f"not followed ({type(error).__name__})")

    def _end(self, event: Event, why: str) -> None:
        self.ends.setdefault(f"line {event.expression.line}: {event.expression.code}: {why}")

    def _note(self, found: Found, event: Event) -> None:
        if found.what:
            key = found.event.expression.number, found.side
            if key not in self.steps:
                self.steps[key] = Step(found)
            self.steps[key].add(found)
        for part, selector in found.parts:
            self.add(part, selector)
        if found.ends:
            self._end(found.event, found.ends)

    def _follow(self, event: Event, selector) -> None:
        kind = event.kind
        if isinstance(selector, tuple) and len(selector) > 1 and type(event.value) in CONTAINERS:
            thing = self.trace.things.of(event.value[selector[0]])
            if thing is not None:  # it may have changed since it was put there
                self.origin(thing, selector[1:], event.n, None)
                return
        if kind == "literal":
            found = Found(event, "is written here")
            found.cells.append(cell(event.value))
            self._note(found, event)
        elif kind == "part":
            self._into(event.source, event.path, selector)
        elif kind == "turn":
            self._turn(event, selector)
        elif kind == "begin":
            if event.thing is not None and event.thing.history[0] is not event:
                self._origin(event, selector)
            elif event.source is not None:
                self.add(event.source, selector)
            else:
                raise Ends("what the function was called with is not followed")
        elif event.is_change:
            self._note(self._explain(event, selector), event)
        elif event.thing is not None and event.thing.history[0] is not event:
            self._origin(event, selector)
        elif kind == "name":
            if event.source is not None and event.source is not event:
                self.add(event.source, selector)
            elif event.is_first or event.value is not None or event.thing is None:
                raise Ends(self._unknown_name(event))
        elif event.source is not None:  # the result of a function of the program
            self.add(event.source, selector)
        else:
            self._note(self._explain(event, selector), event)

    def _unknown_name(self, event: Event) -> str:
        name = event.expression.node.id
        return f"{name} was there before the run, or what set it is not followed"

    def _origin(self, event: Event, selector) -> None:
        """Goes to what made or changed the cells of a thing last, before an event."""
        self.origin(event.thing, selector, event.n, value_at(event, selector))

    def origin(self, thing, selector, n, values: "list | None") -> None:
        """Goes to what made or changed the cells of a thing last, before the event with a number. values are those
        that the cells had then. If they were others when the last known change had made them, the answer ends."""
        try:
            self._origin_of(thing, selector, n, values)
        except Split as split:
            for part in split.parts:
                known = None
                if values is not None:
                    known = [value for row, value in zip(selector.rows, values) if row in part.rows]
                self.origin(thing, part, n, known)

    def _origin_of(self, thing, selector, n, values) -> None:
        if not thing.history:
            raise Ends("what made it is not followed")
        if thing.kind.__name__ == "ndarray":
            found = cell_arrays.origin(self.trace, thing, selector, n)
            if found is not None:
                _check(found, values)
                self._note(found, found.event)
                return
        for change in reversed(thing.history[1:]) if thing.kind.__name__ != "ndarray" else ():
            if change.n >= n:
                continue
            if change.kind == "barrier":
                raise Ends(barred(change))
            selector, found = self._changed(thing, change, selector)
            if found is not None:
                if selector is None:
                    _check(found, values)
                else:
                    values = None
                self._note(found, change)
                if selector is None:
                    return
        first = thing.history[0]
        made = value_at(first, selector)
        if values is not None and made is not None and not _are_same(values, made):
            raise Ends("something changed it that was not seen")
        if first.kind == "name":
            raise Ends(self._unknown_name(first))
        if first.is_change:
            raise Ends("what made it is not followed")
        if first.kind in ("part", "turn", "begin"):
            if first.kind == "part":
                self._into(first.source, first.path, selector)
            elif first.kind == "turn":
                self._turn(first, selector)
            else:
                self.add_source(first, selector)
            return
        if first.source is not None:
            self.add(first.source, selector)
            return
        self._note(self._explain(first, selector), first)

    def add_source(self, event: Event, selector) -> None:
        """Goes on with the argument that a parameter is."""
        if event.source is None:
            raise Ends("what the function was called with is not followed")
        self.add(event.source, selector)

    def _changed(self, thing, change: Event, selector):
        """Returns the selector before a change, and what the change did to the cells, or None. The selector is None if
        the change made them."""
        if isinstance(selector, Cells):
            return cell_writes.changed(self.trace, thing, change, selector)
        return cell_containers.changed(self.trace, thing, change, selector)

    def _into(self, event: "Event | None", path: tuple, selector) -> None:
        """Goes to the part of a value that an assignment to several variables, or a loop, took."""
        if event is None:
            raise Ends("what was unpacked is not followed")
        if isinstance(selector, Cells):
            raise Ends("a table in a tuple is not followed")
        self.add(event, (*path, *selector))

    def _turn(self, event: Event, selector) -> None:
        source = event.source
        if source is None:
            raise Ends("what the loop goes through is not followed")
        found = cell_loops.element(self.trace, event, source, event.turn, event.path, selector)
        self._note(found, event)

    def _explain(self, event: Event, selector) -> Found:
        node, value = event.expression.node, event.value
        if value is None and event.thing is not None and not event.is_change and not event.expression.is_receiver:
            raise Ends("its value was too large to keep")
        if event.expression.times > MAX_TIMES:
            self.ends.setdefault(
                f"line {event.expression.line} ran more than {MAX_TIMES} times: the first are followed"
            )
        for each in (event, *event.parts):
            if each is not None and is_table(each.value):
                self._work += each.value.size
        if self._work > MAX_WORK:
            raise Ends("the tables are too large to follow them further")
        if isinstance(node, ast.Await):
            node = node.value
        if event.expression.kind == "const":
            found = Found(event, "is written here")
            found.cells.append(cell(value))
            return found
        for module in (cell_tables, cell_arrays, cell_python, cell_calls):
            found = module.explain(self.trace, event, node, value, selector)
            if found is not None:
                return found
        name = fact_tables.called_name(node)
        if name and isinstance(node, ast.Call):
            raise Ends(f"{name}: not further")
        raise Ends("not further")


def barred(change: Event) -> str:
    """Returns why an answer ends at something that may have changed a value."""
    expression, often = change.expression, ""
    if any(isinstance(part, Expression) and part.times > MAX_TIMES for _, part in expression.parts):
        often = ", which ran too often to follow it,"
    return f"line {expression.line}: {expression.code}{often} may have changed it"


def value_at(event: Event, selector) -> "list | None":
    """Returns the values that cells had at an event, or None if they are not known."""
    value = event.value
    if isinstance(selector, Cells):
        if not is_table(value):
            return None
        return [cell_views.at(value, row, selector.column) for row in selector.rows[:MAX_ROWS]]
    for key in selector:
        if type(value) not in CONTAINERS or is_dict(value) and key not in value:
            return None
        value = value[key]
    if value is fact_values.OPAQUE or event.container and not selector or not fact_values.is_scalar(value):
        return None
    return [value]


def _are_same(left: list, right: list) -> bool:
    return len(left) == len(right) and all(map(close, left, right))


def _check(found: Found, values: "list | None") -> None:
    """Raises Ends if the value that an assignment gave is another than the cell had later."""
    if values is None or found.event.expression.kind in ("augmented", "augmented name"):
        return
    if len(found.parts) != 1:
        return
    part, selector = found.parts[0]
    given = value_at(part, selector) if part is not None else None
    if given is None:
        return
    if len(given) == 1:
        given = given * len(values)
    if not _are_same(given, values) and not all(isinstance(each, (int, float)) for each in values):
        if not all(fact_values.is_missing(value) for value in values):
            return  # for example a text that was stored in an array of shorter texts
    if not _are_same(given, values) and not _is_converted(given, values):
        raise Ends("something changed it that was not seen")


def _is_converted(given: list, values: list) -> bool:
    """Tells whether an array of integers has cut the values."""
    try:
        return all(int(a) == int(b) for a, b in zip(given, values))
    except (TypeError, ValueError, OverflowError):
        return False


def _hashable(selector):
    try:
        hash(selector)
    except TypeError:
        return repr(selector)
    return selector


def _begin(trace, walk: Walk, place) -> None:
    """Queues the place of the question."""
    n = trace.n + 1
    selector = place.selector
    if isinstance(selector, tuple) and selector and selector[0] == "attribute":
        event = trace.changes.assigned(id(place.holder), selector[1], n)
        if event is None:
            raise Ends(f"no statement of the run assigns .{selector[1]} of the object")
        value = event.parts[1] if len(event.parts) > 1 else None
        if value is None or not _is(value, place.value, trace):
            raise Ends(f"the last value of .{selector[1]} was not set by an assignment that was seen")
        walk._note(cell_containers.stored(event, f".{selector[1]} was set", place.value, selector[1]), event)
        return
    if place.holder is None:
        raise Ends("a variable without a path")
    thing = trace.things.of(place.holder)
    if not isinstance(selector, Cells):
        for holder, path in place.outer:
            thing, selector = trace.things.of(holder), path
            if thing is not None:
                break
    if thing is None:
        raise Ends("no expression of the run made it")
    if not isinstance(selector, Cells):
        inner = trace.things.of(place.value)
        if inner is not None and type(place.value) in (list, dict, tuple):
            raise Ends("the value is a list or dict: ask for one of its elements")
    walk.origin(thing, selector, n, [place.value] if fact_values.is_scalar(place.value) else None)
    for holder, path in place.outer[1:]:  # how the row came to its place
        outer = trace.things.of(holder)
        if outer is not None and outer is not thing:
            walk.origin(outer, path[:1], n, None)


def _is(event: Event, value, trace) -> bool:
    thing = trace.things.of(value)
    return event.value is value or thing is not None and event.thing is thing or event.size == id(value)


def answer(trace, names: dict) -> dict:
    """Returns where the value of the asked path came from, as sandbox.Cell."""
    place = cell_paths.evaluate(names, trace.path)
    walk = Walk(trace)
    shown = text_of(place.value)
    if trace.full:
        return {"value": shown, "from": [], "ends": f"not followed: {trace.full}"}
    with fact_effects.Quiet():
        try:
            _begin(trace, walk, place)
        except (Ends, cell_paths.NoValue) as error:
            walk.ends.setdefault(str(error))
        except Exception as error:  # of numpy or pandas
            walk.ends.setdefault(f"not followed ({type(error).__name__})")
        walk.run()
    return {
        "value": shown,
        "from": [step.as_dict() for step in walk.steps.values()],
        "ends": "; ".join(list(walk.ends)[:3])[:600],
    }
