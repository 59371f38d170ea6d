"""What changed lists and dicts in a run, from a change back to the element before it.

    selector, found = changed(trace, thing, change, selector)   # a selector is the path of an element: (3, "x")
    had(thing, key, n)                                          # whether a dict had a key before event n

found is the step of the change, if it made or moved the element, and selector the element before it, or None.
"""

import ast

import fact_tables
import fact_values
from cell_values import Ends, Event, Expression, Found, cell, is_dict, same, short


def changed(trace, thing, change: Event, selector: tuple):
    """Returns the selector before a change of a list or dict, and the step of the change, if it made the element."""
    expression = change.expression
    if not selector:
        return selector, None
    key = selector[0]
    if expression.kind in ("store", "augmented", "del"):
        return _stored(thing, change, expression, key, selector)
    node = expression.node
    if expression.kind == "augmented name":
        part = change.parts[1]
        before = change.size - part.size if part is not None and part.container else None
        if before is None or not isinstance(key, int):
            raise Ends(f"line {expression.line}: {expression.code} is not followed")
        if key < before:
            return selector, None
        found = Found(change, f"element {key} was added")
        found.parts.append((part, (key - before, *selector[1:])))
        return None, found
    name = fact_tables.called_name(node)
    arguments = [(n, part) for n, ((role, _), part) in enumerate(zip(expression.parts, change.parts))
                 if role == "argument"]  # fmt: skip
    if name == "append":
        if key < change.before:
            return selector, None
        found = Found(change, f"append added element {key}")
        if arguments and arguments[0][1] is not None:
            part = arguments[0][1]
            found.parts.append((part, selector[1:]))
            if fact_values.is_scalar(part.value):
                found.cells.append(cell(part.value, key))
        else:
            found.cells.append(cell(change.operand(arguments[0][0]), key))
        return None, found
    if name == "extend":
        if key < change.before:
            return selector, None
        found = Found(change, f"extend added element {key}")
        if arguments[0][1] is None:
            raise Ends("extend: what it added is not followed")
        found.parts.append((arguments[0][1], (key - change.before, *selector[1:])))
        return None, found
    if name == "insert":
        at = change.operand(arguments[0][0])
        at = max(0, at + change.before) if at < 0 else min(at, change.before)
        if key < at:
            return selector, None
        if key > at:
            return (key - 1, *selector[1:]), None
        found = Found(change, f"insert added element {key}")
        part = arguments[1][1]
        if part is None:
            found.cells.append(cell(change.operand(arguments[1][0]), key))
            return None, found
        found.parts.append((part, selector[1:]))
        if fact_values.is_scalar(part.value):
            found.cells.append(cell(part.value, key))
        return None, found
    if name == "pop" and thing.kind not in fact_values.DICTS:
        at = change.operand(arguments[0][0]) if arguments else change.before - 1
        at = at + change.before if at < 0 else at
        return ((key + 1, *selector[1:]) if key >= at else selector), None
    if name == "pop":
        return selector, None
    if name == "reverse":
        return (change.before - 1 - key, *selector[1:]), None
    if name == "update" and thing.kind in fact_values.DICTS:
        return _updated(change, arguments, selector)
    if name == "setdefault":
        asked = change.operand(arguments[0][0])
        if asked != key or change.size == change.before:
            return selector, None
        found = Found(change, f"setdefault added the key {short(key)}")
        if len(arguments) > 1 and arguments[1][1] is not None:
            found.parts.append((arguments[1][1], selector[1:]))
        return None, found
    if name in ("sort", "remove"):
        return _moved(trace, thing, change, name, selector)
    raise Ends(f"line {expression.line}: {expression.code} is not followed")


def _stored(thing, change: Event, expression: Expression, key, selector: tuple):
    if isinstance(expression.node, ast.Attribute):
        return selector, None
    at = change.operand_of(expression.key)
    if isinstance(at, slice):
        raise Ends(f"line {expression.line}: an assignment to a slice is not followed")
    if thing.kind not in fact_values.DICTS:
        if not isinstance(at, int):
            return selector, None
        at = at + change.before if at < 0 else at
        if expression.kind == "del":
            return ((key + 1, *selector[1:]) if key >= at else selector), None
    elif expression.kind == "del":
        return selector, None
    if type(at) is not type(key) and not same(at, key) or at != key:
        return selector, None
    if expression.kind == "augmented":
        found = Found(change, f"changed {short(key)} by")
        value = change.parts[1]
        if value is not None:
            found.parts.append((value, ()))
            found.cells.append(cell(value.value, "", ""))
        return selector, found
    found = stored(change, f"set {'element ' if thing.kind not in fact_values.DICTS else ''}{short(key)}", None)
    found.cells = []
    part = change.parts[1]
    if part is not None:
        found.parts = [(part, (*expression.path, *selector[1:]))]
        if not part.container and fact_values.is_scalar(part.value):
            found.cells.append(cell(part.value, "", key))
    return None, found


def _updated(change: Event, arguments: list, selector: tuple):
    key = selector[0]
    for n, (role, _) in enumerate(change.expression.parts):
        if role == key:
            found = Found(change, f"update set {short(key)}")
            found.parts.append((change.parts[n], selector[1:]))
            return None, found
    for _, part in arguments:
        if part is None or not is_dict(part.value):
            raise Ends("update: what it added is not followed")
        if key in part.value:
            found = Found(change, f"update set {short(key)}")
            found.parts.append((part, selector))
            return None, found
    return selector, None


def _moved(trace, thing, change: Event, name: str, selector: tuple):
    """Returns the selector before a sort or a removal: the same object must be in the list once."""
    receiver = change.part("receiver")
    before = receiver.value if receiver is not None else None
    after = _contents_after(thing, change)
    if before is None or after is None:
        raise Ends(f"line {change.expression.line}: {change.expression.code} is not followed")
    item = after[selector[0]]
    places = [n for n, each in enumerate(before) if each is item]
    if len(places) != 1:
        raise Ends(f"line {change.expression.line}: {name}: equal elements cannot be told apart")
    found = Found(change, f"{name} moved element {places[0]} to {selector[0]}")
    found.rows = [places[0]]
    found.of = len(before)
    return (places[0], *selector[1:]), found


def _contents_after(thing, change: Event):
    """Returns what a list had after a change, if no other change came later."""
    later = [each for each in thing.history if each.n > change.n]
    return thing.ref() if not later else None


def stored(event: Event, what: str, value, column="", row="") -> Found:
    """Returns the step of an assignment."""
    found = Found(event, what)
    found.cells.append(cell(value, row, column))
    part = event.parts[1] if len(event.parts) > 1 else None
    if part is not None:
        found.parts.append((part, event.expression.path or ()))
    return found


def had(thing, key, n: int) -> bool:
    """Tells whether a dict had a key before an event. It raises Ends if its history does not tell."""
    for change in reversed(thing.history[1:]):
        if change.n >= n:
            continue
        expression = change.expression
        name = fact_tables.called_name(expression.node)
        if expression.kind in ("store", "augmented", "del") and isinstance(expression.node, ast.Subscript):
            if same(change.operand_of(expression.key), key):
                return expression.kind != "del"
        elif name == "clear":
            return False
        elif name in ("setdefault", "pop") and len(change.parts) > 1:
            if same(change.operand(1), key):
                return name == "setdefault"
        else:
            raise Ends(f"line {expression.line}: {expression.code} is not followed")
    first = thing.history[0]
    if not is_dict(first.value) or first.expression.is_receiver:
        raise Ends("what the dict had is not known")
    return key in first.value
