"""What calls of functions and methods of Python made their values from.

There are those that keep elements, such as sorted and list, those that reduce them to one value, such as sum and max,
and those that compute a scalar from scalars, such as round. Calls with tables are in cell_tables and cell_arrays.
"""

import ast
import math

import fact_tables
import fact_values
from cell_containers import had
from cell_loops import element
from cell_python import item, shown
from cell_values import CONTAINERS, Cells, Ends, Event, Found, cell, close, is_dict, is_table, same, short

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


def explain(trace, event: Event, node, value, selector) -> "Found | None":
    """Returns what a call made its value from, or None if it is not one of those that are known."""
    if isinstance(selector, Cells) or not isinstance(node, ast.Call):
        return None
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
        return shown(event, node, value)
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
        return shown(event, node, value)
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


def _same_element(event: Event, source: Event, selector: tuple) -> "Found | None":
    found = Found(event, "")
    for n, (role, _) in enumerate(event.expression.parts):
        if role == selector[0] and is_dict(event.value):
            return item(event, n, selector[1:], role)
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
        elements = list(source.value)
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
