"""What the operators, displays, comprehensions and subscripts of Python made their values from.

Values are scalars, and elements of lists and dicts. Calls are in cell_calls, and tables in cell_tables.
"""

import ast

import fact_values
from cell_containers import stored
from cell_values import CONTAINERS, Cells, Ends, Event, Found, cell, close, is_table, same, short


def explain(trace, event: Event, node, value, selector) -> "Found | None":
    """Returns what an expression made its value from, or None if it is none of those that are known here."""
    if isinstance(selector, Cells):
        return None
    if isinstance(node, (ast.List, ast.Tuple)) and selector:
        return _part_of(event, selector[0], selector[1:], "item")
    if isinstance(node, ast.Dict) and selector:
        return _entry(event, selector)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and selector:
        if not isinstance(selector[0], int) or selector[0] >= len(event.turns):
            raise Ends("its elements are not followed")
        return _element_found(event, event.turns[selector[0]], selector)
    if isinstance(node, ast.DictComp) and selector:
        for key, each in zip(reversed(event.keys), reversed(event.turns)):
            if same(key.value, selector[0]):
                return _element_found(event, each, selector)
        raise Ends("its elements are not followed")
    if isinstance(node, ast.Subscript):
        return _subscript(trace, event, value, selector)
    if isinstance(node, ast.Attribute):
        return _attribute(trace, event, node, value)
    if isinstance(node, ast.IfExp):
        branches = [part for (role, _), part in zip(event.expression.parts, event.parts) if role == "branch"]
        for part in branches:
            if part is not None and (part.value is value or part.thing is not None and part.thing is event.thing):
                found = Found(event, "")
                found.parts.append((part, selector))
                return found
        return shown(event, node, value) if not selector else None
    if isinstance(node, ast.BoolOp):
        last = [part for part in event.parts if part is not None][-1:]
        found = Found(event, "")
        if last and (last[0].value is value):
            found.parts.append((last[0], selector))
        if not selector:
            return shown(event, node, value)
        return found
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.AugAssign)):
        if isinstance(node, ast.BinOp) and selector and isinstance(node.op, ast.Add):
            return _joined(event, selector)
        if isinstance(node, ast.BinOp) and selector and isinstance(node.op, ast.Mult):
            part = event.parts[0]
            if part is None or not part.container or not part.size:
                return None
            found = Found(event, "")
            found.parts.append((part, (selector[0] % part.size, *selector[1:])))
            return found
        return shown(event, node, value) if not selector else None
    return None


def _part_of(event: Event, n, rest: tuple, role: str) -> Found:
    items = [k for k, (each, _) in enumerate(event.expression.parts) if each == role]
    if not isinstance(n, int) or n >= len(items):
        raise Ends("its elements are not followed")
    return item(event, items[n], rest, "")


def item(event: Event, k: int, rest: tuple, column) -> Found:
    """Returns the step of one part of an expression, which became an element or entry of its value."""
    part = event.parts[k]
    found = Found(event, "")
    if part is not None:
        found.parts.append((part, rest))
        return found
    found.what = "is written here"
    found.cells.append(cell(event.operand(k), "", column))
    return found


def _entry(event: Event, selector: tuple) -> Found:
    for k in range(len(event.expression.parts) - 1, 0, -2):
        if same(event.operand(k - 1), selector[0]):
            return item(event, k, selector[1:], selector[0])
    raise Ends("its entries are not followed")


def _element_found(event: Event, part: Event, selector: tuple) -> Found:
    found = Found(event, "")
    found.parts.append((part, selector[1:]))
    return found


def _joined(event: Event, selector: tuple) -> "Found | None":
    left, right = event.parts
    if left is None or not isinstance(selector[0], int):
        return None
    found = Found(event, "")
    if selector[0] < left.size:
        found.parts.append((left, selector))
    elif right is not None:
        found.parts.append((right, (selector[0] - left.size, *selector[1:])))
    return found


def _subscript(trace, event: Event, value, selector: tuple) -> "Found | None":
    receiver = event.part("receiver")
    if receiver is None:
        return None
    if receiver.value is fact_values.OPAQUE or is_table(receiver.value):
        return None
    thing = receiver.thing
    kind = thing.kind if thing is not None else type(receiver.value)
    key = event.operand_of(event.expression.parts[1][1], event.parts[1])
    if isinstance(key, slice):
        if not selector or not receiver.container:
            return shown(event, event.expression.node, value) if not selector else None
        positions = range(receiver.size)[key]
        found = Found(event, "")
        found.parts.append((receiver, (positions[selector[0]], *selector[1:])))
        return found
    if type(receiver.value) is str:
        return shown(event, event.expression.node, value)
    if kind in CONTAINERS:
        if kind not in fact_values.DICTS and isinstance(key, int) and key < 0:
            key += receiver.size
        found = Found(event, "")
        found.parts.append((receiver, (key, *selector)))
        return found
    if receiver.kind == "turn" or receiver.source is not None:  # a row of iterrows
        found = Found(event, "")
        found.parts.append((receiver, (key, *selector)))
        return found
    return None


def _attribute(trace, event: Event, node: ast.Attribute, value) -> "Found | None":
    receiver = event.part("receiver")
    if receiver is None:
        return None
    if receiver.size and receiver.thing is None:
        known = trace.changes.assigned(receiver.size, node.attr, event.n)
        if known is not None and known.expression.kind == "augmented":
            return _augmented(known, node.attr, value)
        if known is not None:
            part = known.parts[1]
            if part is not None and (part.value is value or part.size and part.size == event.size
                                     or part.thing is not None and part.thing is event.thing):  # fmt: skip
                return stored(known, f".{node.attr} was set", value, node.attr)
        if receiver.kind == "turn":
            found = Found(event, "")
            found.parts.append((receiver, (node.attr,)))
            return found
        raise Ends(f"what set .{node.attr} is not followed")
    if fact_values.is_scalar(receiver.value):
        return shown(event, node, value)
    return None


def _augmented(change: Event, name: str, value) -> Found:
    """Returns the step of an augmented assignment to an attribute."""
    if change.value is fact_values.OPAQUE or not close(change.value, value) or change.source is None:
        raise Ends(f"what set .{name} is not followed")
    found = Found(change, f".{name} was changed")
    before, part = change.source, change.parts[1]
    found.cells.append(cell(before.value, "", name))
    if part is not None:
        found.cells.append(cell(part.value, "", part.expression.code))
        found.parts.append((part, ()))
    if before.expression.kind == "augmented":
        inner = _augmented(before, name, before.value)
        found.parts += inner.parts
        found.cells += inner.cells
    elif before.parts[1] is not None:
        found.parts.append((before.parts[1], before.expression.path))
    return found


def shown(event: Event, node, value) -> Found:
    """Returns the step of an expression that computes a scalar from scalars."""
    operands = []
    found = Found(event, "")
    for k, (role, _) in enumerate(event.expression.parts):
        part = event.parts[k]
        if part is not None:
            if part.container or is_table(part.value):
                if role == "receiver" or len(event.parts) == 1:
                    return _whole(event, part, value)
                continue
            found.parts.append((part, ()))
            if fact_values.is_scalar(part.value):
                operands.append((part.expression.code, part.value))
    found.what = f"gave {short(value)}" if value is not fact_values.OPAQUE else "computed"
    for code, operand in operands:
        found.cells.append(cell(operand, "", code))
    return found


def _whole(event: Event, part: Event, value) -> Found:
    found = Found(event, f"gave {short(value)}")
    found.of = part.size
    found.ends = "which elements it used is not followed"
    return found
