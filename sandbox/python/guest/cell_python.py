"""Where the elements of lists and dicts, and scalars, came from."""

import ast
import math

import cell_groups
import fact_tables
import fact_values
from cell_values import (
    CONTAINERS,
    Cells,
    Ends,
    Event,
    Expression,
    Found,
    cell,
    close,
    is_dict,
    is_frame,
    is_table,
    same,
    short,
    text_of,
)

# Functions and methods whose result is computed from the values of their arguments alone.
_COMPUTED = {
    "abs", "round", "int", "float", "str", "bool", "len", "pow", "divmod", "sqrt", "floor", "ceil", "log", "log10",
    "exp", "upper", "lower", "strip", "lstrip", "rstrip", "replace", "title", "split", "join", "format", "startswith",
    "endswith", "date", "datetime", "timedelta", "Decimal", "Fraction", "strptime", "strftime", "fromisoformat", "year",
    "isinstance", "repr", "ord", "chr", "count", "index", "find", "total_seconds", "item", "timestamp",
    "hypot", "zfill",
    "capitalize", "removeprefix", "removesuffix", "isoformat", "weekday", "partition", "fsum", "log2", "sin", "cos",
    "Timestamp", "Timedelta", "to_datetime", "isna", "isnan", "notna", "isdigit", "casefold",
}  # fmt: skip
_REDUCING = {"sum", "min", "max", "len", "any", "all", "mean", "median", "fsum", "fmean"}
_KEEPING = {"list", "tuple", "dict", "copy", "iter", "set", "deepcopy", "Rows"}  # elements are the same
_QUERIES = {"db_query", "db_frame"}
MAX_TURNS = 10_000  # of a generator
MAX_ELEMENTS = 2_000  # of a list that are followed one by one


def stored(event: Event, what: str, value, column="", row="") -> Found:
    """Returns the step of an assignment."""
    found = Found(event, what)
    found.cells.append(cell(value, row, column))
    part = event.parts[1] if len(event.parts) > 1 else None
    if part is not None:
        found.parts.append((part, event.expression.path or ()))
    return found


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


# -- loops


def element(trace, turn: Event, source: Event, k: int, path: tuple, selector) -> Found:
    """Returns where the variable of a loop came from, which is a part of element k of what the loop goes through."""
    node = source.expression.node
    name = fact_tables.called_name(node)
    found = Found(turn, "")
    if isinstance(selector, Cells):
        return cell_groups.looped(turn, source, name, k, path, selector)
    full = (*path, *selector)
    if name == "enumerate" and full:
        part = source.part("argument")
        if full[0] != 1:
            return found
        if part is None:
            raise Ends("enumerate: what it goes through is not followed")
        return element(trace, turn, part, k, full[1:], ())
    if name == "zip" and full:
        parts = [p for (role, _), p in zip(source.expression.parts, source.parts) if role == "argument"]
        part = parts[full[0]]
        if part is None:
            raise Ends("zip: what it goes through is not followed")
        return element(trace, turn, part, k, full[1:], ())
    if name == "range":
        return found
    if name in ("items", "values", "keys"):
        receiver = source.part("receiver")
        if receiver is not None and is_dict(receiver.value):
            key = list(receiver.value)[k]
            if name == "keys" or name == "items" and full[:1] == (0,):
                return found
            found.parts.append((receiver, (key, *(full[1:] if name == "items" else full))))
            return found
    receiver = source.part("receiver")
    if name in ("iterrows", "itertuples") and receiver is not None and is_frame(receiver.value):
        frame = receiver.value
        if name == "iterrows":
            if full[:1] != (1,) or len(full) < 2:
                return found
            column = full[1]
        else:
            if not full:
                raise Ends("itertuples: not further")
            column = full[0]
            if isinstance(column, int):
                column = frame.columns[column - 1]
        at = frame.columns.get_loc(column)
        found.parts.append((receiver, Cells([k], at)))
        found.what = name
        found.rows, found.labels, found.of = [k], [text_of(frame.index[k])], len(frame)
        return found
    return _element_of(found, source, k, full)


def _element_of(found: Found, source: "Event | None", k: int, full: tuple) -> Found:
    if source is None:
        raise Ends("what the loop goes through is not followed")
    value = source.value
    if is_table(value):
        if getattr(value, "ndim", 2) != 1:
            raise Ends("a loop over a table is not followed")
        found.parts.append((source, Cells([k])))
        return found
    if source.turns and isinstance(source.expression.node, ast.GeneratorExp):
        found.parts.append((source.turns[k], full))
        return found
    if is_dict(value):
        if full:
            raise Ends("a key of a dict is not followed")
        return found
    if type(value) in CONTAINERS:
        found.parts.append((source, (k, *full)))
        return found
    raise Ends("what the loop goes through is not followed")


# -- expressions


def explain(trace, event: Event, node, value, selector) -> "Found | None":
    """Returns what an expression of Python made its value from, or None if it is not one of those that are known."""
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
        return _shown(event, node, value) if not selector else None
    if isinstance(node, ast.BoolOp):
        last = [part for part in event.parts if part is not None][-1:]
        found = Found(event, "")
        if last and (last[0].value is value):
            found.parts.append((last[0], selector))
        if not selector:
            return _shown(event, node, value)
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
        return _shown(event, node, value) if not selector else None
    if isinstance(node, ast.Call):
        return _call(trace, event, node, value, selector)
    return None


def _part_of(event: Event, n, rest: tuple, role: str) -> Found:
    items = [k for k, (each, _) in enumerate(event.expression.parts) if each == role]
    if not isinstance(n, int) or n >= len(items):
        raise Ends("its elements are not followed")
    return _item(event, items[n], rest, "")


def _item(event: Event, k: int, rest: tuple, column) -> Found:
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
            return _item(event, k, selector[1:], selector[0])
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
            return _shown(event, event.expression.node, value) if not selector else None
        positions = range(receiver.size)[key]
        found = Found(event, "")
        found.parts.append((receiver, (positions[selector[0]], *selector[1:])))
        return found
    if type(receiver.value) is str:
        return _shown(event, event.expression.node, value)
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
            return augmented(known, node.attr, value)
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
        return _shown(event, node, value)
    return None


def augmented(change: Event, name: str, value) -> Found:
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
        inner = augmented(before, name, before.value)
        found.parts += inner.parts
        found.cells += inner.cells
    elif before.parts[1] is not None:
        found.parts.append((before.parts[1], before.expression.path))
    return found


def _shown(event: Event, node, value) -> Found:
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


def _call(trace, event: Event, node: ast.Call, value, selector: tuple) -> "Found | None":
    name = fact_tables.called_name(node)
    arguments = [part for (role, _), part in zip(event.expression.parts, event.parts) if role == "argument"]
    receiver = event.part("receiver")
    if receiver is not None and receiver.value is fact_values.OPAQUE:
        raise Ends(f"{name}: a method of an object is not followed")
    if name in trace.program.defined:
        raise Ends(f"{name}: what it returned is not followed")
    if name in _QUERIES:
        found = Found(event, "row of a query")
        if selector:
            found.rows, found.of = [selector[0]], event.size
            if len(selector) > 1 and type(value) in CONTAINERS:
                found.cells.append(cell(value[selector[0]].get(selector[1]), selector[0], selector[1]))
        return found
    if selector and name in ("defaultdict", "Counter", "OrderedDict"):
        return _new_dict(event, name, arguments, selector)
    if selector and name in _KEEPING and (arguments or receiver is not None):
        source = arguments[0] if arguments else receiver
        if source is None or name in ("set", "deepcopy"):
            return None
        return _same_element(event, source, selector)
    if selector and name in ("sorted", "reversed"):
        return _sorted(event, arguments[0], name, value, selector)
    if selector and name in ("to_dict", "tolist", "to_list"):
        return None
    if (
        not selector
        and name == "get"
        and receiver is not None
        and is_dict(receiver.value)
        or (not selector and name == "get" and receiver is not None and receiver.container)
    ):
        key = event.operand(1)
        found = Found(event, "")
        if receiver.thing is not None and had(receiver.thing, key, event.n):
            found.parts.append((receiver, (key,)))
        elif len(arguments) > 1 and arguments[1] is not None:
            found.what = f"{short(key)} was not a key: the default {short(value)}"
            found.parts.append((arguments[1], ()))
        else:
            found.what = f"{short(key)} was not a key: the default {short(value)}"
        return found
    if not selector and name in ("min", "max") and len(arguments) > 1:
        return _shown(event, node, value)
    if not selector and name in _REDUCING and arguments and receiver is None:
        return _reduced(event, name, arguments[0], value)
    if not selector and name == "next" and arguments and arguments[0] is not None:
        turns = arguments[0].turns
        if turns and turns[0].value is value:
            found = Found(event, "the first")
            found.parts.append((turns[0], ()))
            return found
        return None
    if not selector and name in _COMPUTED:
        return _shown(event, node, value)
    return None


def _new_dict(event: Event, name: str, arguments: list, selector: tuple) -> "Found | None":
    """Follows defaultdict(int), which makes the values of new keys, and Counter(words)."""
    if not arguments or name == "defaultdict" and len(arguments) == 1:
        found = Found(event, "the key was new: the default")
        return found
    source = arguments[0 if name != "defaultdict" else 1]
    if name == "Counter" and source is not None and type(source.value) in (list, tuple):
        used = [n for n, each in enumerate(source.value) if same(each, selector[0])]
        if len(used) != event.value.get(selector[0]):
            raise Ends("Counter: the count is another")
        found = Found(event, f"counted {fact_values.count(len(used), 'element')}")
        found.rows, found.of = used, len(source.value)
        for n in used[:MAX_ELEMENTS]:
            found.cells.append(cell(source.value[n], n))
            found.parts.append((source, (n,)))
        return found
    if name != "Counter" and source is not None and is_dict(source.value):
        return _same_element(event, source, selector)
    return None


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


def _same_element(event: Event, source: Event, selector: tuple) -> "Found | None":
    found = Found(event, "")
    for n, (role, _) in enumerate(event.expression.parts):
        if role == selector[0] and is_dict(event.value):
            return _item(event, n, selector[1:], role)
    if type(source.value) in CONTAINERS:
        if is_dict(source.value) and not is_dict(event.value):
            return found  # a key
        found.parts.append((source, selector))
        return found
    if source.turns:
        found.parts.append((source.turns[selector[0]], selector[1:]))
        return found
    node = source.expression.node
    if fact_tables.called_name(node) in ("zip", "enumerate", "items", "range", "values", "keys") and not is_dict(
        event.value
    ):
        return element(None, event, source, selector[0], (), selector[1:])
    return None


def _sorted(event: Event, source: "Event | None", name: str, value, selector: tuple) -> "Found | None":
    if source is None or type(source.value) not in CONTAINERS or source.value is None or not selector:
        return None
    before = list(source.value)
    if name == "reversed":
        place = len(before) - 1 - selector[0]
    else:
        if value is None:
            raise Ends("sorted: its result is not known")
        item = value[selector[0]]
        places = [n for n, each in enumerate(before) if each is item]
        if len(places) != 1:
            raise Ends("sorted: equal elements cannot be told apart")
        place = places[0]
    if is_dict(source.value):
        return Found(event, "")
    found = Found(event, f"{name}: element {place} became element {selector[0]}")
    found.rows, found.of = [place], len(before)
    found.parts.append((source, (place, *selector[1:])))
    return found


def _reduced(event: Event, name: str, source: "Event | None", value) -> "Found | None":
    """Returns the elements that a function such as sum has used."""
    if source is None:
        return None
    turns: list = []
    if isinstance(source.expression.node, ast.GeneratorExp):
        turns, elements = source.turns, [each.value for each in source.turns]
        if len(turns) >= MAX_TURNS:
            raise Ends(f"{name}: more than {MAX_TURNS} elements are not followed")
    elif is_table(source.value):
        return None
    elif type(source.value) in CONTAINERS and source.value is not None:
        elements = list(source.value.values() if False else source.value)
    else:
        node = source.expression.node
        receiver = source.part("receiver") if fact_tables.called_name(node) == "values" else None
        if receiver is None or not is_dict(receiver.value):
            return None
        source, elements = receiver, list(receiver.value.values())
        return _reduce(event, name, source, elements, list(receiver.value), [], value)
    return _reduce(event, name, source, elements, list(range(len(elements))), turns, value)


def _reduce(event: Event, name: str, source: Event, elements: list, keys: list, turns: list, value) -> Found:
    if name == "len":
        found = Found(event, f"counted {fact_values.count(len(elements), 'element')}")
        found.of = len(elements)
        found.ends = "" if value == len(elements) else "the count is another"
        if turns or source.kind == "name" or source.thing is not None:
            found.rows = list(range(len(elements)))[:MAX_ELEMENTS]
        return found
    if not all(map(fact_values.is_scalar, elements)):
        raise Ends(f"{name}: its elements are not numbers")
    used = list(range(len(elements)))
    if name in ("min", "max"):
        used = [n for n in used if elements[n] is value] or [n for n in used if same(elements[n], value)]
        used = used[:1]
        if len(event.parts) > 1:  # with key= or default=
            used = [n for n, each in enumerate(elements) if each is value][:1]
        if not used:
            raise Ends(f"{name}: its element is not known")
    if name in ("sum", "fsum"):
        extra = [part for (role, _), part in zip(event.expression.parts, event.parts) if role != "argument"]
        total = math.fsum(map(float, elements)) if extra == [] else None
        if total is None or not close(total, value):
            raise Ends("the sum of the elements is another")
    found = Found(event, f"{name} of {fact_values.count(len(used), 'value')} gave {short(value)}")
    found.of = len(elements)
    found.rows = used
    shown = used[:MAX_ELEMENTS]
    found.cells = [cell(elements[n], keys[n]) for n in shown]
    for n in shown:
        if turns:
            found.parts.append((turns[n], ()))
        else:
            found.parts.append((source, (keys[n],)))
    if len(used) > len(shown):
        found.ends = f"only the first {MAX_ELEMENTS} elements are followed"
    return found
