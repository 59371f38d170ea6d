"""What assignments and methods did to the cells of tables in place."""

import ast
import typing

import cell_paths
import fact_probes
import fact_tables
import fact_values
from cell_tables import method
from cell_values import (
    HOOK,
    Cells,
    Ends,
    Event,
    Found,
    Split,
    cell,
    is_array,
    is_frame,
    is_series,
    is_table,
    numpy,
    pandas,
)
from cell_views import assigned, cells_of_value, column_name, label, matched, need_plain, show


def changed(trace, thing, change: Event, cells: Cells):
    """Returns the cells before a change of a DataFrame or a Series, and the step of the change if it made them."""
    expression, node = change.expression, change.expression.node
    if expression.kind in ("store", "augmented", "del"):
        return _stored(trace, thing, change, cells)
    receiver = change.part("receiver")
    if expression.kind == "augmented name":
        raise Ends(f"line {expression.line}: {expression.code} is not followed")
    name = fact_tables.called_name(node)
    if receiver is None or not is_table(receiver.value):
        raise Ends(f"line {expression.line}: {expression.code} is not followed")
    if name == "insert" and is_frame(receiver.value):
        at_column = change.operand(1)
        if not isinstance(cells.column, int):
            return cells, None
        if cells.column == at_column:
            found = assigned(change, change.parts[3], receiver.value, cells, f"insert of column {change.operand(2)}")
            return None, found
        return Cells(cells.rows, cells.column - (cells.column > at_column)), None
    if name == "pop" and is_frame(receiver.value):
        gone = receiver.value.columns.get_loc(change.operand(1))
        if isinstance(cells.column, int) and isinstance(gone, int) and cells.column >= gone:
            return Cells(cells.rows, cells.column + 1), None
        return cells, None
    if change.after is None:
        raise Ends(f"line {expression.line}: {expression.code} is not followed")
    again = method(trace, change, node, name, change.after, cells, receiver)
    if again is None:
        raise Ends(f"line {expression.line}: {name} is not followed")
    return None, again


def _stored(trace, thing, change: Event, cells: Cells):
    expression, node = change.expression, change.expression.node
    before = change.parts[0].value if change.parts[0] is not None else None
    if isinstance(node, ast.Attribute):
        if node.attr in ("columns", "index", "name"):
            return cells, None
        if before is None:
            raise Ends(f"line {expression.line}: {expression.code} is not followed")
        if is_frame(before) and node.attr in before.columns:
            key: typing.Any = node.attr
        else:
            return cells, None
    else:
        key = change.operand_of(expression.key)
    target = node.value
    accessor = _accessor(target)
    if accessor is not None:
        receiver = change.parts[0].part("receiver") if change.parts[0] is not None else None
        before = receiver.value if receiver is not None else None
    if before is None or not is_table(before):
        raise Ends(f"line {expression.line}: {expression.code} is not followed")
    if not cell_paths.are_labels_plain(before):
        raise Ends("labels of the program's own classes are not followed")
    if isinstance(cells.column, tuple):
        raise Ends(f"line {expression.line}: {expression.code}: labels are not followed")
    if expression.kind == "del":
        gone = before.columns.get_loc(key)
        return Cells(cells.rows, cells.column + (cells.column >= gone)), None
    if (
        is_frame(before)
        and accessor is None
        and type(key) is list
        and all(map(fact_values.is_scalar, key))
        and not (len(key) == len(before) and all(type(each) is bool for each in key))
    ):
        return _columns_stored(change, before, cells, key)
    if is_frame(before) and accessor is None and not is_table(key) and not _is_list(key) and not isinstance(key, slice):
        return _column_stored(change, before, cells, key)
    return _cells_stored(change, before, cells, key, accessor)


def _is_list(key) -> bool:
    return isinstance(key, (list, tuple)) and not isinstance(key, tuple) or is_array(key)


def _accessor(target) -> "str | None":
    while (
        isinstance(target, ast.Call)
        and isinstance(target.func, ast.Name)
        and target.func.id in (fact_probes.HOOK, HOOK)
    ):
        target = target.args[1]
    if isinstance(target, ast.Attribute) and target.attr in ("loc", "iloc", "at", "iat"):
        return target.attr
    return None


def _columns_stored(change: Event, before, cells: Cells, keys: list):
    """Follows df[["a", "b"]] = value."""
    columns = list(before.columns)
    columns += [key for key in keys if key not in columns]
    if not before.columns.is_unique or columns[cells.column] not in keys:
        return cells, None
    n, value = keys.index(columns[cells.column]), change.parts[1]
    found = Found(change, f"set {fact_values.count(len(keys), 'column')}")
    found.of, found.rows = len(before), list(cells.rows)
    found.labels = [label(before, row) for row in cells.rows]
    if value is None or change.expression.kind == "augmented":
        raise Ends(f"line {change.expression.line}: {change.expression.code} is not followed")
    given = value.value
    if is_frame(given):
        rows = [row for row in matched(before.index, given.index, cells.rows) if row is not None]
        found.parts.append((value, Cells(rows, n)))
    elif is_array(given) and given.shape == (len(before), len(keys)):
        found.parts.append((value, Cells([row * len(keys) + n for row in cells.rows])))
    elif fact_values.is_scalar(given):
        found.parts.append((value, ()))
    else:
        raise Ends(f"line {change.expression.line}: the assigned value is not followed")
    return None, found


def _column_stored(change: Event, before, cells: Cells, key):
    columns = before.columns
    if key in columns:
        place = columns.get_loc(key)
        if not isinstance(place, int):
            raise Ends("columns with the same name are not followed")
    else:
        place = len(columns)
    if cells.column != place:
        return cells, None
    what = f"set the column {key}" if not (change.expression.kind == "augmented") else f"changed the column {key}"
    if change.expression.kind == "augmented":
        found = _augmented(change, before, cells, what)
        return None, found
    return None, assigned(change, change.parts[1], before, cells, what)


def _augmented(change: Event, before, cells: Cells, what: str) -> Found:
    """Returns the step of df["x"] += value."""
    found = Found(change, what)
    show(found, before, cells)
    found.parts.append((change.parts[0], cells))
    value = change.parts[1]
    if value is not None and is_series(value.value):
        if not value.value.index.equals(before.index):
            raise Ends("the rows were matched by label, which is not followed here")
        found.parts.append((value, Cells(cells.rows)))
    elif value is not None:
        found.parts.append((value, ()))
    return found


def _cells_stored(change: Event, before, cells: Cells, key, accessor):
    """Follows an assignment such as df.loc[mask, "x"] = value or s[3] = value."""
    np, pd = numpy(), pandas()
    need_plain(before)
    ids = cell_paths.ids_of(before)
    line = change.expression.line
    try:
        part = getattr(ids, accessor)[key] if accessor else ids[key]
    except (KeyError, IndexError, ValueError):
        if accessor == "loc":
            return _row_added(change, before, cells, key)
        raise Ends(f"line {line}: {change.expression.code} is not followed") from None
    touched = np.asarray(part)
    wanted = [row * before.shape[1] + cells.column for row in cells.rows] if is_frame(before) else list(cells.rows)
    hit = np.isin(wanted, touched.ravel()).tolist()
    if not any(hit):
        return cells, None
    if not all(hit):
        raise Split(
            [
                Cells([row for row, is_hit in zip(cells.rows, hit) if is_hit is each], cells.column)
                for each in (True, False)
            ]
        )
    found = Found(change, "set " + fact_values.count(int(touched.size), "cell"))
    found.of = len(before)
    found.rows, found.labels = list(cells.rows), [label(before, row) for row in cells.rows]
    name = column_name(before, cells.column)
    value = change.parts[1]
    if change.expression.kind == "augmented":
        found.what = "changed " + fact_values.count(int(touched.size), "cell")
        show(found, before, cells)
        if value is not None and fact_values.is_scalar(value.value):
            found.parts.append((value, ()))
        return cells, found
    if value is None:
        return None, found
    given = value.value
    if fact_values.is_scalar(given):
        found.parts.append((value, ()))
        found.cells.append(cell(given, "", name))
        return None, found
    if is_series(given) and isinstance(part, pd.Series) and is_frame(before):
        rows = matched(before.index, given.index, cells.rows)
        kept = [row for row in rows if row is not None]
        found.parts.append((value, Cells(kept)))
        cells_of_value(found, given, kept)
        return None, found
    if (is_array(given) or type(given) is list) and touched.ndim == 1 and len(given) == touched.size:
        places = [int(np.flatnonzero(touched.ravel() == each)[0]) for each in wanted]
        if is_array(given):
            found.parts.append((value, Cells(places)))
        else:
            found.parts += [(value, (place,)) for place in places]
        return None, found
    found.ends = "the assigned value is not followed"
    return None, found


def _row_added(change: Event, before, cells: Cells, key):
    """Follows df.loc[new label] = [values]."""
    if not fact_values.is_scalar(key) or key in before.index:
        raise Ends(f"line {change.expression.line}: {change.expression.code} is not followed")
    if any(row != len(before) for row in cells.rows):
        return cells, None
    found = Found(change, f"added the row {key}")
    value = change.parts[1]
    if value is not None and type(value.value) in (list, tuple) and isinstance(cells.column, int):
        found.cells.append(cell(value.value[cells.column], key, column_name(before, cells.column)))
        found.parts.append((value, (cells.column,)))
    else:
        found.ends = "the assigned value is not followed"
    return None, found
