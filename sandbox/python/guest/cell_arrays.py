"""Where the elements of arrays of numpy came from. Cells of an array are its positions in the order of C."""

import ast
import math

import cell_columns
import cell_joins
import cell_values
import cell_views
import fact_tables
import fact_values
from cell_values import (
    CONTAINERS,
    Cells,
    Ends,
    Event,
    Found,
    Split,
    cell,
    close,
    is_array,
    is_series,
    numpy,
    same,
    short,
)

MAX_STORE = 4_000_000  # elements of an array that is assigned to

# Functions and methods that give some of the elements, at other places.
_MOVES = {
    "reshape", "ravel", "flatten", "transpose", "T", "copy", "squeeze", "swapaxes", "flip", "fliplr", "flipud", "roll",
    "repeat", "tile", "take", "diagonal", "diag", "rot90", "expand_dims", "broadcast_to", "asarray", "array",
    "ascontiguousarray",
    "concatenate", "vstack", "hstack", "stack", "column_stack", "row_stack", "append", "atleast_1d",
    "atleast_2d", "moveaxis",
    "delete", "compress", "view",
}  # fmt: skip
_REDUCE = {"sum", "mean", "min", "max", "prod", "std", "var", "median", "any", "all", "nansum", "nanmean", "nanmax",
           "nanmin", "amax", "amin", "average", "ptp", "count_nonzero", "nanmedian", "nanstd"}  # fmt: skip
_NEW = {"zeros", "ones", "full", "empty", "arange", "linspace", "eye", "identity", "zeros_like", "ones_like",
        "full_like",
        "empty_like"}  # fmt: skip
_RANDOM = {"normal", "integers", "random", "rand", "randn", "randint", "choice", "uniform", "permutation", "poisson",
           "standard_normal", "exponential", "binomial", "random_sample"}  # fmt: skip


def _addresses(array):
    """Returns the addresses of the elements of an array, in the order of C."""
    np = numpy()
    found = np.zeros(array.shape, dtype=np.int64)
    for axis, (size, step) in enumerate(zip(array.shape, array.strides)):
        shape = [1] * array.ndim
        shape[axis] = size
        found += (np.arange(size, dtype=np.int64) * step).reshape(shape)
    return found.ravel() + array.__array_interface__["data"][0]


def root_of(array):
    """Returns the array that owns the memory of a view."""
    while is_array(array.base):
        array = array.base
    return array


def _writes(trace, array, n: int) -> list:
    """Returns the changes of all arrays that share memory with an array, before an event, the latest first."""
    found = []
    root = root_of(array)
    for thing in trace.things.all():
        if thing.kind.__name__ != "ndarray" or len(thing.history) < 2:
            continue
        other = thing.ref()
        if other is None:
            raise Ends("an array that may share its memory was too large to keep")
        if other is array or root_of(other) is root:
            found += [(change, other) for change in thing.history[1:] if change.n < n]
    return sorted(found, key=lambda pair: -pair[0].n)


def origin(trace, thing, cells: Cells, n: int):
    """Returns the step of the last write to cells of an array before an event, also through a view, or None."""
    np = numpy()
    array = thing.ref()
    if array is None:
        raise Ends("the array was too large to keep")
    if array.size > MAX_STORE:
        raise Ends("the array is too large")
    mine = None
    for change, other in _writes(trace, array, n):
        line, code = change.expression.line, change.expression.code
        if change.kind == "barrier":
            raise Ends(f"line {line}: {code} may have changed it")
        if mine is None:
            mine = _addresses(array)
        wanted = mine[list(cells.rows)]
        if change.expression.kind == "augmented name" or change.expression.kind not in ("store", "augmented"):
            touched = np.arange(other.size)
            if change.expression.kind not in ("augmented name",):
                if np.isin(wanted, _addresses(other)).any():
                    raise Ends(f"line {line}: {code} is not followed")
                continue
        else:
            if isinstance(change.expression.node, ast.Attribute):
                continue
            key = change.operand_of(change.expression.key)
            touched = np.arange(other.size).reshape(other.shape)[key]
        places = np.asarray(touched).ravel()
        theirs = _addresses(other)[places]
        hit = np.isin(wanted, theirs).tolist()
        if not any(hit):
            continue
        if not all(hit):
            raise Split(
                [Cells([row for row, is_hit in zip(cells.rows, hit) if is_hit is each]) for each in (True, False)]
            )
        order = {int(address): k for k, address in enumerate(theirs)}
        at = [order[int(address)] for address in wanted]
        return _written(change, array, other, cells, touched, at, thing)
    return None


def _written(change: Event, array, other, cells: Cells, touched, at: list, thing) -> Found:
    np = numpy()
    size = int(np.asarray(touched).size)
    through = "" if other is array else ", through a view of the array"
    found = Found(change, f"set {fact_values.count(size, 'element')}{through}")
    found.rows, found.of = list(cells.rows), array.size
    found.labels = [cell_views.label(array, row) for row in cells.rows]
    value = change.parts[1] if len(change.parts) > 1 else None
    if change.expression.kind in ("augmented", "augmented name"):
        found.what = f"changed {fact_values.count(size, 'element')}{through}"
        left = change.parts[0]
        if left is not None:
            flat = np.asarray(touched).ravel()[at]
            found.parts.append((left, Cells(flat)))
    if value is None:
        return found
    given = value.value
    if fact_values.is_scalar(given):
        found.parts.append((value, ()))
        found.cells.append(cell(given))
    elif is_array(given) or is_series(given):
        shape = np.shape(touched)
        ids = np.broadcast_to(np.arange(given.size).reshape(given.shape), shape).ravel()
        before = Cells(ids[at])
        found.cells += [
            cell(cell_views.at(given, row, None), cell_views.label(given, row)) for row in before.rows[:200]
        ]
        found.parts.append((value, before))
    elif type(given) in (list, tuple) and np.ndim(touched) == 1 and len(given) == size:
        for place in at:
            found.parts.append((value, (int(place),)))
            found.cells.append(cell(given[place]))
    else:
        found.ends = "the assigned value is not followed"
    return found


def explain(trace, event: Event, node, value, selector) -> "Found | None":
    """Returns the elements that elements of an array, or a scalar, were made from, or None if it is not known."""
    if isinstance(node, ast.Subscript):
        return _subscript(event, value, selector)
    if isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)) and isinstance(selector, Cells) and is_array(value):
        return _broadcast(event, list(range(len(event.parts))), value, selector, _operator_name(node), node)
    if isinstance(node, ast.Attribute):
        receiver = event.part("receiver")
        if receiver is None or not is_array(receiver.value):
            return None
        if node.attr == "T" and isinstance(selector, Cells):
            return _moved(event, receiver, receiver.value, value, selector, "", _ids(receiver.value).T)
        if node.attr in ("shape", "size", "ndim"):
            found = Found(event, f"{node.attr} of the array")
            found.of = receiver.value.size
            return found
        return None
    if isinstance(node, ast.Call):
        return _call(event, node, value, selector)
    return None


def _operator_name(node) -> str:
    return type(getattr(node, "op", None) or node.ops[0]).__name__


def _ids(array):
    return numpy().arange(array.size).reshape(array.shape)


def _moved(event: Event, source: Event, given, value, selector, what: str, ids) -> Found:
    np = numpy()
    if not isinstance(selector, Cells):
        numbers, results = [int(np.asarray(ids).ravel()[0])], [value]
        if np.size(ids) != 1:
            raise Ends("a part of an array is not followed")
    else:
        if np.shape(ids) != np.shape(value):
            raise Ends("what it gave is not what was computed again")
        flat = np.asarray(ids).ravel()
        numbers = [int(flat[row]) for row in selector.rows]
        results = [value.flat[row] for row in selector.rows]
    for number, result in zip(numbers, results):
        if not same(given.flat[number], result):
            raise Ends("what it gave is not what was computed again")
    before = Cells(numbers)
    found = Found(event, what)
    cell_views.show(found, given, before)
    found.parts.append((source, before))
    return found


def _subscript(event: Event, value, selector) -> "Found | None":
    receiver = event.part("receiver")
    if receiver is None or not is_array(receiver.value):
        return None
    key = event.operand_of(event.expression.parts[1][1], event.parts[1])
    array = receiver.value
    taken = _ids(array)[key]
    size = numpy().size(taken)
    what = "took" if not isinstance(selector, Cells) else f"took {size} of {array.size} elements"
    if type(selector) is tuple and selector:
        return None
    return _moved(event, receiver, array, value, selector, what, taken)


def _broadcast(event: Event, operands: list, value, cells: Cells, name: str, node=None) -> "Found | None":
    """Follows an operation that computes each element from the elements at its place."""
    np = numpy()
    found = Found(event, f"{name} of the same place")
    values = []
    for n in operands:
        given, part = event.operand(n), event.parts[n]
        if is_series(given):
            given_ids = np.arange(len(given))
        elif is_array(given):
            given_ids = _ids(given)
        elif fact_values.is_scalar(given):
            values.append([given] * len(cells.rows))
            if part is not None:
                found.parts.append((part, ()))
                found.cells.append(cell(given, "", part.expression.code))
            continue
        elif type(given) in (list, tuple) and all(map(fact_values.is_scalar, given)) and np.ndim(value) == 1:
            values.append([given[row] for row in cells.rows])
            if part is not None:
                found.parts += [(part, (row,)) for row in cells.rows]
            continue
        else:
            raise Ends("an operand is not followed")
        flat = np.broadcast_to(given_ids, value.shape).ravel()
        before = Cells(flat[list(cells.rows)])
        values.append([cell_views.at(given, row, None) for row in before.rows])
        shown = (list(found.rows), list(found.labels), found.of)
        cell_views.show(found, given, before)
        if shown[2] is not None:  # the rows are those of the first operand
            found.rows, found.labels, found.of = shown
        assert part is not None
        found.parts.append((part, before))
    function = cell_values.OPERATORS.get(type(getattr(node, "op", None) or getattr(node, "ops", [None])[0]))
    if function is not None and len(values) == 2:
        with np.errstate(all="ignore"):
            for k, row in enumerate(cells.rows[:50]):
                again = function(np.asarray(values[0][k]), np.asarray(values[1][k]))
                result = value.flat[row]
                if not close(np.asarray(again).item(), np.asarray(result).item()):
                    if again == again and not math.isinf(float(result)):
                        raise Ends("what it gave is not what was computed again")
    if len(cells.rows) == 1:
        found.what = f"gave {short(value.flat[cells.rows[0]])}"
    return found


def _call(event: Event, node: ast.Call, value, selector) -> "Found | None":
    np = numpy()
    name = fact_tables.called_name(node)
    receiver = event.part("receiver")
    is_method = receiver is not None and is_array(receiver.value)
    is_module = (
        receiver is not None
        and type(receiver.value).__name__ == "module"
        and (receiver.value.__name__.partition(".")[0] == "numpy")
    )
    is_generator = receiver is not None and type(receiver.value).__name__ in ("Generator", "RandomState")
    maker = receiver.value.__name__ if receiver is not None and is_module else ""
    is_random = name in _RANDOM and ("random" in maker or is_generator)
    if is_random:
        found = Found(event, "random numbers")
        if isinstance(selector, Cells) and is_array(value):
            cell_views.show(found, value, selector)
        return found
    if not is_method and not is_module:
        return _builtin(event, name, value, selector)
    if is_module and name in _NEW and is_array(value):
        found = Found(event, f"{name}: made here")
        if isinstance(selector, Cells):
            cell_views.show(found, value, selector)
        return found
    roles = [role for role, _ in event.expression.parts]
    arguments = [n for n, role in enumerate(roles) if role == "argument"]
    named = {role: event.operand(n) for n, role in enumerate(roles) if role not in ("receiver", "argument")}
    main = roles.index("receiver") if is_method else arguments[0] if arguments else None
    if main is None:
        return None
    source = event.parts[main]
    rest = [event.operand(n) for n in arguments if n != main]
    if name == "where" and is_module and len(arguments) == 3 and isinstance(selector, Cells):
        return _where(event, arguments, value, selector)
    if source is None:
        return None
    given = source.value
    if is_module and name in ("array", "asarray") and type(given) in CONTAINERS and isinstance(selector, Cells):
        return _from_list(event, source, given, value, selector)
    if name in ("concatenate", "vstack", "hstack", "stack", "column_stack") and isinstance(selector, Cells):
        return _joined(event, name, source, rest, named, value, selector)
    if is_series(given) and is_module:
        given_array = np.asarray(given)
    elif is_array(given):
        given_array = given
    else:
        return None
    if name in _MOVES:
        ids = _ids(given_array)
        made = getattr(ids, name)(*rest, **named) if is_method else getattr(np, name)(ids, *rest, **named)
        if name in ("array", "asarray", "copy"):
            made = ids
        return _moved(event, source, given_array, value, selector, "", made)
    if name in _REDUCE or name in ("argmax", "argmin"):
        return _reduced(event, name, source, given_array, rest, named, value, selector, is_method)
    if (
        name in ("cumsum", "cumprod")
        and given_array.ndim == 1
        and isinstance(selector, Cells)
        and len(selector.rows) == 1
    ):
        used = Cells(range(selector.rows[0] + 1))
        found = Found(event, f"{name} of {fact_values.count(len(used.rows), 'element')}")
        if not close(getattr(given_array[: len(used.rows)], name[3:])(), value.flat[selector.rows[0]]):
            raise Ends("what it gave is not what was computed again")
        cell_views.show(found, given_array, used)
        found.parts.append((source, used))
        return found
    if name == "diff" and given_array.ndim == 1 and isinstance(selector, Cells) and not rest and not named:
        used = Cells([each for row in selector.rows for each in (row, row + 1)])
        found = Found(event, "diff")
        cell_views.show(found, given_array, used)
        found.parts.append((source, used))
        return found
    if name in ("sort", "unique") and given_array.ndim == 1 and isinstance(selector, Cells):
        order = np.argsort(given_array, kind="stable")
        if name == "unique":
            order = np.unique(given_array, return_index=True)[1]
        return _moved(event, source, given_array, value, selector, name, order)
    function = getattr(np, name, None)
    if is_module and isinstance(function, np.ufunc) and (is_array(value) or is_series(value)):
        if is_series(value):
            return cell_columns.each(event, name, value, selector, source if is_series(given) else None)
        return _broadcast(event, arguments, value, selector, name)
    if name in ("round", "astype", "clip", "around", "nan_to_num", "isnan", "abs") and isinstance(selector, Cells):
        if is_array(value) and value.shape == given_array.shape:
            found = Found(event, f"{name} of the same place")
            cell_views.show(found, given_array, selector)
            found.parts.append((source, Cells(selector.rows)))
            return found
    if name in ("item", "tolist") and is_method:
        if selector and isinstance(selector, tuple):
            flat = int(np.ravel_multi_index(selector, given_array.shape)) if len(selector) == given_array.ndim else None
            if flat is None:
                return None
            found = Found(event, "")
            found.parts.append((source, Cells([flat])))
            return found
        if given_array.size == 1:
            found = Found(event, "")
            found.parts.append((source, Cells([0])))
            return found
    if name in ("dot", "matmul"):
        return _matmul(event, event.parts[main], event.parts[arguments[-1]], value, selector)
    return None


def _builtin(event: Event, name: str, value, selector) -> "Found | None":
    """Follows functions of Python that get an array."""
    source = event.part("argument")
    if source is None or not is_array(source.value) or isinstance(selector, Cells):
        return None
    array = source.value
    if name == "len":
        found = Found(event, f"counted {fact_values.count(len(array), 'element')}")
        found.of = array.size
        return found
    if name in ("sum", "min", "max") and array.ndim == 1 and not selector:
        return _reduced(event, name, source, array, [], {}, value, (), True)
    if name in ("list", "tuple") and array.ndim == 1 and selector:
        found = Found(event, "")
        found.parts.append((source, Cells(selector[:1])))
        return found
    if name in ("float", "int", "round") and array.size == 1:
        found = Found(event, "")
        found.parts.append((source, Cells([0])))
        return found
    return None


def _where(event: Event, arguments: list, value, cells: Cells) -> Found:
    """Follows np.where(condition, a, b) to the value that it took."""
    np = numpy()
    condition = np.broadcast_to(np.asarray(event.operand(arguments[0])), value.shape).ravel()
    found = Found(event, "")
    taken = {bool(condition[row]) for row in cells.rows}
    for is_true in taken:
        n = arguments[1] if is_true else arguments[2]
        given, part = event.operand(n), event.parts[n]
        rows = [row for row in cells.rows if bool(condition[row]) is is_true]
        found.what = f"where: the condition was {is_true}"
        if fact_values.is_scalar(given):
            found.cells.append(cell(given))
            if part is not None:
                found.parts.append((part, ()))
            continue
        if not is_array(given) and not is_series(given) or part is None:
            raise Ends("where: an operand is not followed")
        ids = np.arange(given.size).reshape(np.shape(given))
        before = Cells(np.broadcast_to(ids, value.shape).ravel()[rows])
        cell_views.show(found, given, before)
        found.parts.append((part, before))
    part = event.parts[arguments[0]]
    given = event.operand(arguments[0])
    if part is not None and (is_series(given) or is_array(given)) and np.shape(given) == value.shape:
        found.parts.append((part, Cells(cells.rows)))
    return found


def _from_list(event: Event, source: Event, given, value, cells: Cells) -> Found:
    np = numpy()
    found = Found(event, "the array is made here")
    for row in cells.rows:
        path = tuple(int(n) for n in np.unravel_index(row, value.shape))
        element = given
        for n in path:
            element = element[n]
        if not close(element, value.flat[row].item() if hasattr(value.flat[row], "item") else value.flat[row]):
            raise Ends("what it gave is not what was computed again")
        found.parts.append((source, path))
    cell_views.show(found, value, cells)
    return found


def _joined(event: Event, name: str, source: Event, rest: list, named: dict, value, cells: Cells) -> Found:
    np = numpy()
    items = list(source.value) if type(source.value) in (list, tuple) else None
    if items is None or not all(map(is_array, items)):
        raise Ends(f"{name}: its arrays are not known")
    begin, twins = [0], []
    for each in items:
        twins.append(_ids(each) + begin[-1])
        begin.append(begin[-1] + each.size)
    made = getattr(np, name)(twins, *rest, **named)
    if made.shape != value.shape:
        raise Ends("what it gave is not what was computed again")
    found = Found(event, "")
    for row in cells.rows:
        number = int(made.flat[row])
        n = int(np.searchsorted(begin, number, side="right")) - 1
        if not same(items[n].flat[number - begin[n]], value.flat[row]):
            raise Ends("what it gave is not what was computed again")
        before = Cells([number - begin[n]])
        cell_views.show(found, items[n], before)
        found.what = f"{name}: from array {n + 1} of {len(items)}"
        found.parts.append((cell_joins.inner(source, n), before))
    return found


def _reduced(event, name, source: Event, array, rest, named, value, selector, is_method) -> "Found | None":
    """Follows a.sum() and np.sum(a, axis=0)."""
    np = numpy()
    axis = rest[0] if rest else named.get("axis")
    if len(rest) > 1 or set(named) - {"axis", "keepdims", "ddof"} or not isinstance(axis, (int, type(None))):
        raise Ends(f"{name}: not further")
    ids = _ids(array)
    if axis is None:
        used, result = ids.ravel(), value
        if isinstance(selector, Cells):
            raise Ends(f"{name}: not further")
    else:
        if array.ndim == 1:
            used, result = ids, value
        else:
            if not isinstance(selector, Cells) or len(selector.rows) != 1:
                raise Ends(f"{name}: ask for one element")
            moved = np.moveaxis(ids, axis, -1).reshape(-1, array.shape[axis])
            used, result = moved[selector.rows[0]], value.flat[selector.rows[0]]
    some = array.ravel()[used]
    kept = {key: each for key, each in named.items() if key == "ddof"}
    function = getattr(np, {"amax": "max", "amin": "min"}.get(name, name))
    if not close(function(some, **kept).item(), np.asarray(result).item()):
        raise Ends(f"{name}: what it gave is not what was computed again")
    if name in ("min", "max", "amax", "amin", "argmax", "argmin"):
        best = np.argmin(some) if "min" in name else np.argmax(some)
        used = used[[int(best)]]
    found = Found(event, f"{name} of {fact_values.count(len(some), 'element')} gave {short(result)}")
    before = Cells(used)
    cell_views.show(found, array, before)
    if len(used) > cell_views.MAX_CELLS_FOLLOWED:
        found.ends = f"{len(used)} elements are not followed one by one"
    else:
        found.parts.append((source, before))
    return found


def _matmul(event: Event, left: "Event | None", right: "Event | None", value, selector) -> "Found | None":
    np = numpy()
    if left is None or right is None or not is_array(left.value) or not is_array(right.value):
        return None
    a, b = left.value, right.value
    if a.ndim != 2 or b.ndim not in (1, 2) or not isinstance(selector, Cells) or len(selector.rows) != 1:
        raise Ends("a product of arrays: not further")
    place = np.unravel_index(selector.rows[0], value.shape)
    row = [int(n) for n in _ids(a)[place[0]]]
    column = [int(n) for n in (_ids(b)[:, place[1]] if b.ndim == 2 else _ids(b))]
    if not close((a.ravel()[row] * b.ravel()[column]).sum().item(), value.flat[selector.rows[0]].item()):
        raise Ends("what it gave is not what was computed again")
    found = Found(event, "a row times a column")
    for part, given, used in ((left, a, row), (right, b, column)):
        cell_views.show(found, given, Cells(used))
        found.parts.append((part, Cells(used)))
    return found
