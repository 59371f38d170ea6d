"""Paths to a cell, such as rows[3]["x"], a[1, 2] or t.loc["Oslo", "price"], and the values there."""

import ast
import types

import fact_values
import fact_views
from cell_values import CONTAINERS, Cells, is_array, is_dict, is_frame, is_series, is_table, numpy, pandas

MAX_CELLS = 4_000_000  # of a table that is looked at
_LOCATORS = ("loc", "iloc", "at", "iat")
_slot_of = vars(type)["__mro__"].__get__


class NoValue(Exception):
    """A path that leads to no value. The text says why."""


def parse(text: str) -> "tuple[str, list[tuple]]":
    """Returns the variable of a path, and its steps: ("key", key) or ("attribute", name)."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NoValue(f"{text} is not a path such as rows[3]['x'] or t.loc['Oslo', 'price']") from None
    steps: list[tuple] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript):
            try:
                steps.append(("key", ast.literal_eval(node.slice)))
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                raise NoValue(f"{ast.unparse(node.slice)} is not a constant: ask with a number or a text") from None
        elif isinstance(node, ast.Attribute):
            steps.append(("attribute", node.attr))
        else:
            raise NoValue(f"{text} is not a path such as rows[3]['x'] or t.loc['Oslo', 'price']")
        node = node.value
    return node.id, steps[::-1]


class Place:
    """Where a path leads: the object that holds the value, what selects it there, and the value."""

    def __init__(self, holder, selector, value) -> None:
        self.holder, self.selector, self.value = holder, selector, value
        self.outer: list[tuple] = []  # the objects around the holder, the innermost first, with the path from there


def evaluate(names: dict, text: str) -> Place:
    """Returns the place of a path in a namespace. It raises NoValue if there is none, or if its value is not a cell."""
    name, steps = parse(text)
    if name not in names:
        raise NoValue(f"{name} is not a variable at the end of the run")
    value, place = names[name], Place(None, (), names[name])
    holders: list[tuple] = []
    for n, (what, key) in enumerate(steps):
        if is_table(value):
            return _in_table(value, steps[n:])
        if what == "attribute":
            holder, value = value, _attribute(value, key)
            holders = []
            place = Place(holder, ("attribute", key), value)
        elif type(value) in CONTAINERS:
            holder, value = value, _item(value, key)
            key = key if not isinstance(key, int) or is_dict(holder) else key % len(holder)
            place = Place(holder, (key,), value)
            place.outer = holders = [(outer, (*path, key)) for outer, path in [(holder, ()), *holders]]
        else:
            raise NoValue(f"{key!r} of <{fact_values.class_name(value)}> is not followed")
    if is_table(value):
        return _in_table(value, [])
    return place


def _item(value, key):
    if is_dict(value):
        if not fact_values.has_plain_keys(value):
            raise NoValue("keys of the program's own classes are not followed")
        if not fact_values.is_plain_key(key) or key not in value:
            raise NoValue(f"{key!r} is not a key")
        return value[key]
    if not isinstance(key, int) or not -len(value) <= key < len(value):
        raise NoValue(f"{key!r} is not an index of a list of {len(value)}")
    return value[key]


def _attribute(value, name: str):
    """Returns an attribute of an object from its dict or its slots: no code of the program runs."""
    kind = type(value)
    for each in _slot_of(kind):
        found = type.__dict__["__dict__"].__get__(each).get(name)
        if type(found) is types.MemberDescriptorType:
            try:
                return found.__get__(value, kind)
            except AttributeError:
                raise NoValue(f"the object has no attribute {name}") from None
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        attributes = {}
    if is_dict(attributes) and name in attributes:
        return attributes[name]
    raise NoValue(f"the object has no attribute {name} of its own")


def ids_of(value):
    """Returns a table of the same shape and labels, whose cells are numbers: row * columns + column."""
    np, pd = numpy(), pandas()
    if is_array(value):
        return np.arange(value.size).reshape(value.shape)
    if value.size > MAX_CELLS:
        raise NoValue(f"the table has {value.size} cells, more than {MAX_CELLS}")
    if is_series(value):
        return pd.Series(np.arange(len(value)), index=value.index, name=value.name)
    return pd.DataFrame(np.arange(value.size).reshape(value.shape), index=value.index, columns=value.columns)


def cells_of(value, ids) -> Cells:
    """Returns the cells of a table that have some numbers of ids_of, which are in one column."""
    if not is_frame(value):
        return Cells(ids)
    width = value.shape[1]
    columns = {int(each) % width for each in ids}
    if len(columns) != 1:
        raise NoValue("the cells are in several columns")
    return Cells([int(each) // width for each in ids], columns.pop())


def are_labels_plain(value) -> bool:
    """Tells whether pandas calls no code of the program if it searches the labels of a table."""
    if is_array(value):
        return True
    return fact_views.is_plain(value.index) and (not is_frame(value) or fact_views.is_plain(value.columns))


def _in_table(table, steps: list) -> Place:
    if not are_labels_plain(table):
        raise NoValue("labels of the program's own classes are not followed")
    ids = ids_of(table)
    value = table
    for n, (what, key) in enumerate(steps):
        try:
            if what == "key":
                ids, value = ids[key], value[key]
            elif key in _LOCATORS and not is_array(value):
                ids, value = getattr(ids, key), getattr(value, key)
            elif key in ("values", "T") and is_table(value):
                ids, value = getattr(ids, key), getattr(value, key)
            elif is_frame(value) and key in value.columns:
                ids, value = ids[key], value[key]
            elif is_series(value) and key in value.index:
                ids, value = ids[key], value[key]
            else:
                raise NoValue(f".{key} of a table is not followed")
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise NoValue(f"{key!r} is not in the table ({type(error).__name__})") from None
        if numpy().ndim(ids) == 0 and not hasattr(ids, "iloc") and not hasattr(ids, "obj"):
            if steps[n + 1 :]:
                raise NoValue("a part of a cell is not followed")
            return Place(table, cells_of(table, [ids]), value)
    size = getattr(ids, "size", 0)
    if size == 1 and is_table(ids):
        return Place(table, cells_of(table, numpy().asarray(ids).ravel()), numpy().asarray(value).ravel()[0])
    raise NoValue(f"the path leads to {size or 'several'} values: ask for one of them")
