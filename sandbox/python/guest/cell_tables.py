"""Where the cells of DataFrames and Series came from.

A twin of a table has numbers in place of its cells, or a column of numbers beside them. The operation runs again on the
twin, and the numbers in its result say which cells and rows it took. The cells of the result must then be those that
the run had.
"""

import ast
import operator
import typing

import cell_paths
import cell_python
import fact_probes
import fact_tables
import fact_values
import fact_views
from cell_values import (
    CONTAINERS,
    HOOK,
    INDEX,
    Cells,
    Ends,
    Event,
    Found,
    Split,
    close,
    is_array,
    is_dict,
    is_frame,
    is_series,
    is_table,
    numpy,
    pandas,
    same,
    text_of,
)

MAX_CELLS_FOLLOWED = 2_000
ROW = "\x00glasshouse row"  # the name of a column of numbers
OTHER = "\x00glasshouse other"

# Methods that give some of the cells, at other places.
_MOVES = {
    "head", "tail", "sort_index", "copy", "reindex", "transpose", "rename", "set_axis", "to_frame", "squeeze", "unstack",
    "stack", "shift", "drop", "truncate", "xs", "droplevel", "swaplevel", "get", "take", "rename_axis", "add_prefix",
    "add_suffix", "reset_index", "first", "last", "pop", "filter", "reorder_levels", "set_flags", "asfreq", "to_period",
    "select_dtypes", "swapaxes", "infer_objects", "item",
}  # fmt: skip
# Methods that give some of the rows, depending on their values.
_ROWS = {"query", "sort_values", "dropna", "drop_duplicates", "nlargest", "nsmallest", "set_index", "explode"}
# Methods that compute each cell from the cell at its place.
_EACH = {
    "astype", "round", "abs", "fillna", "clip", "map", "replace", "isna", "notna", "isnull", "notnull", "isin", "between",
    "convert_dtypes", "to_datetime", "to_numeric", "upper", "lower", "strip", "lstrip", "rstrip", "title", "len",
    "contains", "startswith", "endswith", "slice", "zfill", "capitalize", "floor", "ceil", "normalize", "strftime",
    "tz_localize", "tz_convert", "total_seconds", "day_name", "month_name", "add", "sub", "mul", "div", "truediv",
    "floordiv", "mod", "pow", "radd", "rsub", "rmul", "rdiv", "rtruediv", "eq", "ne", "lt", "le", "gt", "ge", "where",
    "mask", "combine_first", "extract", "cat", "to_timedelta",
}  # fmt: skip
_EACH_ATTRIBUTES = {
    "year", "month", "day", "hour", "minute", "second", "weekday", "dayofweek", "date", "quarter", "days", "dayofyear",
    "seconds", "time", "day_of_week",
}  # fmt: skip
_REDUCE = {
    "sum", "mean", "min", "max", "count", "median", "std", "var", "prod", "nunique", "any", "all", "quantile", "first",
    "last", "size", "sem", "skew", "mode", "idxmax", "idxmin", "item",
}  # fmt: skip
# Methods that compute each cell from the cells before it.
_RUNNING = {"cumsum", "cumprod", "cummax", "cummin", "diff", "pct_change", "ffill", "bfill", "rank", "interpolate"}
_GROUP_EACH = {"transform", "cumsum", "cumcount", "cumprod", "cummax", "cummin", "shift", "diff", "rank", "pct_change",
               "ffill", "bfill", "fillna"}  # fmt: skip
OPERATORS: dict = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip


# -- cells


def label(value, row: int) -> str:
    """Returns the label of a row."""
    if is_array(value):
        return str(row) if value.ndim == 1 else str(tuple(int(n) for n in numpy().unravel_index(row, value.shape)))
    one = value[row] if isinstance(value, pandas().Index) else value.index[row]
    if isinstance(one, tuple):
        return "(" + ", ".join(map(text_of, one)) + ")"
    return text_of(one) if not isinstance(one, str) else one


def column_name(value, column) -> str:
    """Returns the name of a column."""
    if isinstance(column, tuple) and column and column[0] == INDEX:
        return f"index {value.index.names[column[1]] or ''}".strip()
    if is_frame(value):
        name = value.columns[column]
    else:
        name = getattr(value, "name", None)
    return (
        ""
        if name is None
        else name
        if isinstance(name, str)
        else text_of(name)
        if fact_values.is_scalar(name)
        else str(tuple(map(str, name)))
        if isinstance(name, tuple)
        else ""
    )


def at(value, row: int, column):
    """Returns the value of one cell."""
    if isinstance(column, tuple) and column and column[0] == INDEX:
        return value.index.get_level_values(column[1])[row]
    if is_frame(value):
        return value.iat[row, column]
    if is_series(value):
        return value.iat[row]
    return value.flat[row] if is_array(value) else value[row]


def rows_of(value) -> int:
    """Returns the number of rows."""
    return value.size if is_array(value) else len(value)


def show(found: Found, value, cells: Cells) -> Found:
    """Adds the rows and cells of a table to a step."""
    found.of = rows_of(value)
    for row in cells.rows:
        if row not in found.rows:
            found.rows.append(row)
            found.labels.append(label(value, row))
    name = column_name(value, cells.column)
    for row in cells.rows[:200]:
        found.cells.append(cell := cell_python.cell(at(value, row, cells.column), label(value, row), name))
        del cell
    return found


def need_plain(value) -> None:
    """Raises Ends if a comparison of values or labels of a table would call code of the program."""
    if is_array(value):
        if value.dtype.kind == "O":
            raise Ends("an array of objects is not followed")
        return
    if not cell_paths.are_labels_plain(value):
        raise Ends("labels of the program's own classes are not followed")
    columns = [value.iloc[:, n] for n in range(value.shape[1])] if is_frame(value) else [value]
    if not all(map(fact_views.is_plain, columns)):
        raise Ends("columns with objects are not followed")


def back(event: Event, source: Event, table, result, cells: Cells, what: str, numbers, *, is_moved=True) -> Found:
    """Returns the step of an operation that took cells. numbers has the numbers of ids_of(table) of the cells."""
    np = numpy()
    found = Found(event, what)
    numbers = np.asarray(numbers)
    by_column: dict = {}
    width = table.shape[1] if is_frame(table) else 1
    for row, number in zip(cells.rows, numbers.tolist()):
        if number is None or number != number or number < 0:
            found.what = f"{what}: no row had this place, and the cell is new"
            continue
        place, column = divmod(int(number), width) if is_frame(table) else (int(number), None)
        if is_moved and not same(at(table, place, column), at(result, row, cells.column)):
            raise Ends("what it gave is not what was computed again")
        by_column.setdefault(column, []).append(place)
    if not what and any(tuple(places) != cells.rows for places in by_column.values()):
        found.what = "took the row from another place"
    for column, places in by_column.items():
        before = Cells(places, column)
        show(found, table, before)
        found.parts.append((source, before))
    return found


# -- changes


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
            found = _assigned(change, change.parts[3], receiver.value, cells, f"insert of column {change.operand(2)}")
            return None, found
        return Cells(cells.rows, cells.column - (cells.column > at_column)), None
    if name == "pop" and is_frame(receiver.value):
        gone = receiver.value.columns.get_loc(change.operand(1))
        if isinstance(cells.column, int) and isinstance(gone, int) and cells.column >= gone:
            return Cells(cells.rows, cells.column + 1), None
        return cells, None
    if change.after is None:
        raise Ends(f"line {expression.line}: {expression.code} is not followed")
    again = _method(trace, change, node, name, change.after, cells, receiver)
    if again is None:
        raise Ends(f"line {expression.line}: {name} is not followed")
    return None, again


def _stored(trace, thing, change: Event, cells: Cells):
    expression, node = change.expression, change.expression.node
    before = change.parts[0].value if change.parts[0] is not None else None
    if isinstance(node, ast.Attribute):
        if node.attr in ("columns", "index", "name"):
            return cells, None
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
    if is_frame(before) and accessor is None and type(key) is list and all(map(fact_values.is_scalar, key)) and not (
        len(key) == len(before) and all(type(each) is bool for each in key)
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
        rows = [row for row in _matched(before.index, given.index, cells.rows) if row is not None]
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
    return None, _assigned(change, change.parts[1], before, cells, what)


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


def _assigned(change: Event, value: "Event | None", before, cells: Cells, what: str) -> Found:
    """Returns the step of an assignment of a column."""
    found = Found(change, what)
    found.of = len(before)
    found.rows, found.labels = list(cells.rows), [label(before, row) for row in cells.rows]
    found.side = "set"
    if value is None:
        return found
    given = value.value
    if is_series(given):
        rows = _matched(before.index, given.index, cells.rows)
        kept = [row for row in rows if row is not None]
        if len(kept) < len(rows):
            found.what = f"{what}: no row of the value had the label, and the cell is missing (NaN)"
        if kept:
            found.parts.append((value, Cells(kept)))
            _cells_of_value(found, given, kept)
    elif is_array(given) and given.ndim == 1 and len(given) == len(before):
        found.parts.append((value, Cells(cells.rows)))
        _cells_of_value(found, given, cells.rows)
    elif type(given) in (list, tuple) and len(given) == len(before):
        for row in cells.rows:
            found.parts.append((value, (row,)))
            found.cells.append(cell_python.cell(given[row], label(before, row)))
    elif fact_values.is_scalar(given):
        found.parts.append((value, ()))
        found.cells.append(cell_python.cell(given))
    else:
        raise Ends(f"line {change.expression.line}: the assigned value is not followed")
    return found


def _cells_of_value(found: Found, given, rows) -> None:
    for row in rows[:200]:
        found.cells.append(cell_python.cell(at(given, row, None), label(given, row)))


def _matched(target, index, rows) -> list:
    """Returns the positions of rows of a table in an index, by label."""
    if target.equals(index):
        return list(rows)
    if not index.is_unique or not fact_views.is_plain(index) or not fact_views.is_plain(target):
        raise Ends("the rows were matched by labels that are not unique")
    places = index.get_indexer(target[list(rows)])
    return [int(place) if place >= 0 else None for place in places]


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
        found.cells.append(cell_python.cell(given, "", name))
        return None, found
    if is_series(given) and isinstance(part, pd.Series) and is_frame(before):
        rows = _matched(before.index, given.index, cells.rows)
        kept = [row for row in rows if row is not None]
        found.parts.append((value, Cells(kept)))
        _cells_of_value(found, given, kept)
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
        found.cells.append(cell_python.cell(value.value[cells.column], key, column_name(before, cells.column)))
        found.parts.append((value, (cells.column,)))
    else:
        found.ends = "the assigned value is not followed"
    return None, found


# -- expressions


def explain(trace, event: Event, node, value, selector) -> "Found | None":
    """Returns what cells of a table, or a scalar, were made from, or None if no table is behind them."""
    if isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp)):
        return _elementwise(event, node, value, selector) if isinstance(selector, Cells) else None
    if isinstance(node, ast.Subscript):
        return _subscript(trace, event, value, selector)
    if isinstance(node, ast.Attribute):
        return _attribute(trace, event, node, value, selector)
    if isinstance(node, ast.Call):
        name = fact_tables.called_name(node)
        receiver = event.part("receiver")
        if receiver is not None and receiver.value is not None and type(receiver.value).__name__ != "module":
            return _method(trace, event, node, name, value, selector, receiver)
        return _function(trace, event, node, name, value, selector)
    return None


def _as_cells(value, selector) -> Cells:
    return selector if isinstance(selector, Cells) else Cells([0])


def _wrapped(value, selector) -> typing.Any:
    """Returns a table for a value, so that a scalar, too, has a cell."""
    return value if isinstance(selector, Cells) else pandas().Series([value], dtype=object)


def _subscript(trace, event: Event, value, selector) -> "Found | None":
    receiver = event.part("receiver")
    if receiver is None:
        return None
    key_of = event.expression.parts[1][1]
    accessor = None
    base = receiver
    if isinstance(receiver.expression.node, ast.Attribute) and receiver.expression.node.attr in (
        "loc",
        "iloc",
        "at",
        "iat",
    ):
        accessor = receiver.expression.node.attr
        inner = receiver.part("receiver")
        if inner is None or not is_table(inner.value):
            return None
        base = inner
    table = base.value
    if _is_groups(table) and isinstance(selector, Cells):
        raise Ends("groups are not followed here")
    if not is_table(table) or is_array(table):
        if type(receiver.expression.node).__name__ == "Attribute" and receiver.expression.node.attr == "str":
            return _each(event, "str", value, selector, _table_behind(receiver))
        return None
    if not cell_paths.are_labels_plain(table):
        raise Ends("labels of the program's own classes are not followed")
    key = event.operand_of(key_of, event.parts[1])
    if is_table(key):
        need_plain(key)
    ids = cell_paths.ids_of(table)
    taken = getattr(ids, accessor)[key] if accessor else ids[key]
    is_row = is_frame(table) and is_series(taken) and accessor in ("loc", "iloc") and not isinstance(key, tuple)
    what = ""
    if is_table(taken) and len(taken) != len(table) and not is_row:
        what = f"took {len(taken)} of {len(table)} rows"
    elif is_row or not is_table(taken):
        what = "took"
    if not isinstance(selector, Cells):
        if is_table(taken):
            raise Ends("a part of a table is not followed")
        return back(event, base, table, _wrapped(value, selector), Cells([0]), "took", [taken])
    if not is_table(taken) or taken.shape != value.shape:
        raise Ends("what it gave is not what was computed again")
    return back(event, base, table, value, selector, what, _numbers_at(taken, selector))


def _numbers_at(ids, cells: Cells):
    np = numpy()
    rows = list(cells.rows)
    if is_frame(ids):
        return ids.iloc[rows, cells.column].to_numpy()
    return np.asarray(ids).ravel()[rows]


def _is_groups(value) -> bool:
    return fact_values.package_of(value) == "pandas" and "GroupBy" in type(value).__name__


def _table_behind(event: "Event | None") -> "Event | None":
    """Returns the event of the Series that an accessor such as .str or .dt belongs to."""
    while event is not None and not is_table(event.value):
        event = event.part("receiver")
    return event


def _attribute(trace, event: Event, node: ast.Attribute, value, selector) -> "Found | None":
    receiver = event.part("receiver")
    if receiver is None:
        return None
    name, table = node.attr, receiver.value
    if not is_table(table) or is_array(table):
        behind = _table_behind(receiver)
        if behind is not None and name in _EACH_ATTRIBUTES and isinstance(selector, Cells):
            return _each(event, name, value, selector, behind)
        return None
    if name in ("shape", "size", "empty", "ndim"):
        found = Found(event, f"{name} of the table")
        found.of = len(table)
        return found
    if not isinstance(selector, Cells):
        return None
    if name == "values":
        if is_frame(table) and is_array(value) and value.shape == table.shape:
            columns = {row % table.shape[1] for row in selector.rows}
            found = Found(event, "")
            for column in columns:
                rows = [row // table.shape[1] for row in selector.rows if row % table.shape[1] == column]
                found.parts.append((receiver, Cells(rows, column)))
            return found
        found = Found(event, "")
        found.parts.append((receiver, Cells(selector.rows)))
        return found
    if name == "T":
        return back(event, receiver, table, value, selector, "", _numbers_at(cell_paths.ids_of(table).T, selector))
    if name in ("index", "columns"):
        if name == "columns":
            return Found(event, "")
        found = Found(event, "")
        found.parts.append((receiver, Cells(selector.rows, (INDEX, 0))))
        return found
    if is_frame(table) and is_series(value) and fact_views.is_plain(table.columns) and name in table.columns:
        place = table.columns.get_loc(name)
        found = Found(event, "")
        found.parts.append((receiver, Cells(selector.rows, place)))
        return found
    return None


# -- arithmetic


def _elementwise(event: Event, node, value, cells: Cells) -> "Found | None":
    """Returns the operands of an operation on tables, which were at the same place or had the same label."""
    if not (is_series(value) or is_frame(value)):
        return None
    if isinstance(cells.column, tuple):
        raise Ends("labels of a result are not followed")
    found = Found(event, "")
    operands = []
    for n, part in enumerate(event.parts):
        given = event.operand(n)
        if is_series(given) or is_frame(given):
            if not cell_paths.are_labels_plain(given):
                raise Ends("labels of the program's own classes are not followed")
            rows = _matched(value.index, given.index, cells.rows)
            column = None
            if is_frame(given):
                if not is_frame(value):
                    return None
                name = value.columns[cells.column]
                if not given.columns.is_unique or name not in given.columns:
                    raise Ends("no column of this name in one of the tables")
                column = given.columns.get_loc(name)
            elif is_frame(value):
                raise Ends("a table and a Series: not followed")
            if None in rows:
                found.what = "no row of one table had the label: the result is missing (NaN)"
            kept = [row for row in rows if row is not None]
            operands.append([at(given, row, column) if row is not None else None for row in rows])
            if part is not None and kept:
                before = Cells(kept, column)
                shown = (list(found.rows), list(found.labels), found.of)
                show(found, given, before)
                if shown[2] is not None:  # the rows are those of the first table
                    found.rows, found.labels, found.of = shown
                found.parts.append((part, before))
        elif is_array(given):
            if given.ndim != 1 or len(given) != len(value) or not is_series(value):
                raise Ends("an array and a table: not followed")
            operands.append([given[row] for row in cells.rows])
            assert part is not None
            found.parts.append((part, Cells(cells.rows)))
        elif fact_values.is_scalar(given):
            operands.append([given] * len(cells.rows))
            if part is not None:
                found.parts.append((part, ()))
                found.cells.append(cell_python.cell(given, "", part.expression.code))
        else:
            raise Ends("an operand is not followed")
    if not found.what:
        found.what = _again(node, operands, value, cells)
    return found


def _again(node, operands: list, value, cells: Cells) -> str:
    """Computes the cells again, and returns the text of the first."""
    operation = getattr(node, "op", None) or node.ops[0]
    function = OPERATORS.get(type(operation))
    if isinstance(node, ast.UnaryOp):
        return "of the same row"
    if function is None or len(operands) != 2:
        raise Ends("the operation is not followed")
    for n, row in enumerate(cells.rows[:50]):
        left, right = operands[0][n], operands[1][n]
        result = at(value, row, cells.column)
        if fact_values.is_missing(left) or fact_values.is_missing(right):
            continue
        with numpy().errstate(all="ignore"):
            try:
                again = function(left, right)
            except ZeroDivisionError:
                continue
        if not close(again, result) and not fact_values.is_missing(result) and abs(result) != float("inf"):
            raise Ends("what it gave is not what was computed again")
    if len(cells.rows) == 1:
        result = at(value, cells.rows[0], cells.column)
        return f"gave {cell_python.short(result)}"
    return "of the same row"


def _each(event: Event, name: str, value, selector, source: "Event | None") -> "Found | None":
    """Returns the cell from which an operation computed the cell at its place."""
    if source is None or not isinstance(selector, Cells):
        return None
    table = source.value
    if len(table) != len(value) or not value.index.equals(table.index):
        raise Ends(f"{name}: the rows are others")
    column = selector.column
    if is_frame(table):
        if not is_frame(value) or not table.columns.is_unique or not isinstance(column, int):
            raise Ends(f"{name}: not further")
        if value.columns[column] not in table.columns:
            raise Ends(f"{name}: the column is new")
        column = table.columns.get_loc(value.columns[column])
    else:
        column = None
    before = Cells(selector.rows, column)
    are_same = all(
        same(at(table, row, column), at(value, row, selector.column)) for row in selector.rows[:MAX_CELLS_FOLLOWED]
    )
    found = Found(event, "" if are_same else f"{name} of the same row")
    show(found, table, before)
    found.parts.append((source, before))
    return found


# -- methods


def _method(trace, event: Event, node, name: str, value, selector, receiver: Event) -> "Found | None":
    table = receiver.value
    if type(table).__name__ == "module" or table is fact_values.OPAQUE:
        return None
    if _is_groups(table) or _is_grouped(receiver):
        return _grouped(trace, event, name, value, selector, receiver)
    if not is_table(table) or is_array(table):
        behind = _table_behind(receiver)
        if behind is not None and name in _EACH and is_series(behind.value):
            _arguments(event)
            return _each(event, name, value, selector, behind)
        if behind is not None and type(table).__name__ in ("Rolling", "Expanding"):
            return _windowed(event, name, value, selector, receiver, behind)
        return None
    if isinstance(selector, Cells) and is_table(value) and not cell_paths.are_labels_plain(value):
        raise Ends("labels of the program's own classes are not followed")
    if name in ("apply", "applymap", "pipe", "agg", "aggregate") and name != "agg":
        raise Ends(f"{name}: a function of the program computed it")
    if name in ("tolist", "to_list", "to_numpy"):
        return _as_list(event, value, selector, receiver)
    if name == "to_dict":
        return _to_dict(event, value, selector, receiver)
    if name in ("merge", "join"):
        return _merge(event, name, value, selector, receiver)
    if name in ("pivot_table", "pivot"):
        return _pivot(event, name, value, selector, receiver)
    if name == "melt":
        return _melt(event, value, selector, receiver)
    if name == "assign":
        return _assign(event, value, selector, receiver)
    if name == "value_counts":
        return _value_counts(event, value, selector, receiver)
    if name in _ROWS:
        return _selected(event, name, value, selector, receiver)
    if name in _MOVES:
        return _moved(event, name, value, selector, receiver)
    if name in _RUNNING and isinstance(selector, Cells):
        return _running(event, name, value, selector, receiver)
    if name in ("where", "mask", "fillna", "combine_first"):
        return _chosen(event, name, value, selector, receiver)
    if name in _EACH:
        _arguments(event)
        return _each_of_several(event, name, value, selector, receiver)
    if name in _REDUCE or name in ("agg", "aggregate"):
        return _reduced(event, name, value, selector, receiver)
    raise Ends(f"{name}: not further")


def _arguments(event: Event, *, without: tuple = ()) -> "tuple[list, dict]":
    """Returns the values of the arguments of a call. It raises Ends if one is not known, or is code of the program."""
    positional, named = [], {}
    for n, (role, _) in enumerate(event.expression.parts):
        if role == "receiver" or role in without:
            continue
        value = event.operand(n)
        if is_table(value):
            need_plain(value)
        elif type(value) in (list, tuple):
            if not all(fact_values.is_scalar(each) or is_table(each) or type(each) in (list, tuple) for each in value):
                raise Ends("an argument is an object of the program")
        if role == "argument":
            positional.append(value)
        else:
            named[role] = value
    return positional, named


def _call(table, name: str, arguments: "tuple[list, dict]"):
    positional, named = arguments
    return getattr(table, name)(*positional, **{k: v for k, v in named.items() if k != "inplace"})


def _moved(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    table = receiver.value
    if not cell_paths.are_labels_plain(table):
        raise Ends("labels of the program's own classes are not followed")
    arguments = _arguments(event)
    ids = _call(cell_paths.ids_of(table), name, arguments)
    cells = _as_cells(value, selector)
    result = _wrapped(value, selector)
    if is_table(ids) != isinstance(selector, Cells) or is_table(ids) and ids.shape != value.shape:
        raise Ends(f"{name}: what it gave is not what was computed again")
    if not is_table(ids):
        return back(event, receiver, table, result, cells, name, [ids])
    if isinstance(cells.column, tuple):  # a label of the result
        return _label_moved(event, name, value, cells, receiver, ids)
    if name == "reset_index" and is_frame(ids) and isinstance(cells.column, int):
        new = value.shape[1] - (table.shape[1] if is_frame(table) else 1)
        if cells.column < new:
            found = Found(event, "")
            found.parts.append((receiver, Cells(cells.rows, (INDEX, cells.column))))
            return found
    what = name if len(value) != len(table) or name in ("shift", "reindex", "unstack", "stack") else ""
    if what and len(value) < len(table) and name not in ("unstack", "transpose", "stack"):
        what = f"{name} took {len(value)} of {len(table)} rows"
    return back(event, receiver, table, value, cells, what, _numbers_at(ids, cells))


def _label_moved(event: Event, name: str, value, cells: Cells, receiver: Event, ids) -> Found:
    table = receiver.value
    if value.index.nlevels != table.index.nlevels or not is_table(ids):
        raise Ends(f"{name}: labels are not followed")
    numbers = numpy().asarray(ids.iloc[:, 0] if is_frame(ids) else ids)[list(cells.rows)]
    width = table.shape[1] if is_frame(table) else 1
    found = Found(event, "")
    found.parts.append((receiver, Cells([int(each) // width for each in numbers], cells.column)))
    return found


def _twin(table):
    """Returns a copy of a table with a column of the numbers of its rows."""
    frame = table.to_frame(table.name if table.name is not None else "\x00value") if is_series(table) else table
    if len(frame) * (frame.shape[1] + 1) > cell_paths.MAX_CELLS:
        raise Ends("the table is too large")
    if not frame.columns.is_unique:
        raise Ends("columns with the same name are not followed")
    made = pandas().DataFrame(frame)
    made[ROW if frame.columns.nlevels == 1 else (ROW, *[""] * (frame.columns.nlevels - 1))] = numpy().arange(len(frame))
    return made


def _selected(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows an operation that gives some rows of a table in some order."""
    table = receiver.value
    if not isinstance(selector, Cells):
        return None
    need_plain(table)
    arguments = _arguments(event)
    if is_series(table):
        if name == "explode":
            raise Ends("explode: not further")
        return _selected_of_series(event, name, value, selector, receiver, arguments)
    positional, named = arguments
    columns = list(table.columns)
    if name == "drop_duplicates" and not positional and "subset" not in named:
        named = {**named, "subset": columns}
    if name == "dropna":
        if named.get("axis") in (1, "columns") or positional:
            return _moved_by_labels(event, name, value, selector, receiver)
        if "subset" not in named:
            named = {**named, "subset": columns}
    made = _call(_twin(table), name, (positional, named))
    numbers = made[ROW].to_numpy()
    if name == "set_index":
        numbers = numpy().arange(len(table))
    if len(numbers) != len(value):
        raise Ends(f"{name}: what it gave is not what was computed again")
    rows = [int(numbers[row]) for row in selector.rows]
    if isinstance(selector.column, tuple):
        return _index_selected(event, name, selector, receiver, rows, named, positional)
    column = columns.index(value.columns[selector.column])
    what = name if name != "set_index" else ""
    if len(value) < len(table):
        what = f"{name} took {len(value)} of {len(table)} rows"
    elif name == "sort_values":
        what = "sort_values moved the row"
    found = back(event, receiver, table, value, selector, what, [row * len(columns) + column for row in rows],
                 is_moved=name != "explode")  # fmt: skip
    return found


def _index_selected(event, name, selector, receiver, rows, named, positional) -> Found:
    table = receiver.value
    found = Found(event, "")
    if name == "set_index":
        keys = positional[0] if positional else named.get("keys")
        keys = keys if isinstance(keys, list) else [keys]
        key = keys[selector.column[1]] if not named.get("append") else None
        if not fact_values.is_scalar(key) or key not in table.columns:
            raise Ends("set_index: the labels are not followed")
        found.parts.append((receiver, Cells(rows, table.columns.get_loc(key))))
    else:
        found.parts.append((receiver, Cells(rows, selector.column)))
    return found


def _moved_by_labels(event, name, value, selector, receiver) -> Found:
    table = receiver.value
    if not value.index.equals(table.index) or not table.columns.is_unique:
        raise Ends(f"{name}: not further")
    column = table.columns.get_loc(value.columns[selector.column])
    found = Found(event, "")
    found.parts.append((receiver, Cells(selector.rows, column)))
    return found


def _selected_of_series(event, name, value, selector, receiver, arguments) -> Found:
    """Follows an operation on a Series that keeps the labels: the Series runs again with its positions as labels."""
    table, pd = receiver.value, pandas()
    numbered = pd.Series(table.array, index=pd.RangeIndex(len(table)))
    positional, named = arguments
    made = _call(numbered, name, (positional, {k: v for k, v in named.items() if k != "ignore_index"}))
    if len(made) != len(value):
        raise Ends(f"{name}: what it gave is not what was computed again")
    numbers = [int(made.index[row]) for row in selector.rows]
    if isinstance(selector.column, tuple):
        found = Found(event, "")
        found.parts.append((receiver, Cells(numbers, selector.column)))
        return found
    what = f"{name} took {len(value)} of {len(table)} rows" if len(value) < len(table) else f"{name} moved the row"
    return back(event, receiver, table, value, selector, what, numbers)


def _each_of_several(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows a method such as fillna or add, whose argument may be a table, too."""
    found = _each(event, name, value, selector, receiver)
    if found is None:
        return None
    _each_again(event, name, value, selector, receiver.value)
    for n, (role, _) in enumerate(event.expression.parts):
        part = event.parts[n]
        if role == "receiver" or part is None or role in ("inplace", "errors", "format"):
            continue
        if is_series(part.value) and name not in ("map", "isin"):
            rows = [row for row in _matched(value.index, part.value.index, selector.rows) if row is not None]
            if rows:
                show(found, part.value, Cells(rows))
                found.parts.append((part, Cells(rows)))
                found.what = found.what or f"{name} of the same row"
        elif name == "map" and is_dict(part.value):
            for row in selector.rows:
                key = at(receiver.value, row, None)
                if fact_values.is_plain_key(key) and fact_values.has_plain_keys(part.value) and key in part.value:
                    found.parts.append((part, (key,)))
        elif name == "map" and is_series(part.value):
            keys = [at(receiver.value, row, None) for row in selector.rows]
            if part.value.index.is_unique:
                places = part.value.index.get_indexer(keys)
                found.parts.append((part, Cells([each for each in places if each >= 0])))
        elif fact_values.is_scalar(part.value):
            found.parts.append((part, ()))
    return found


def _each_again(event: Event, name: str, value, cells: Cells, table) -> None:
    """Computes some cells again from their rows alone. It raises Ends if the results are others."""
    positional, named = _arguments(event)
    for row in cells.rows[:5]:

        def of_row(given, row=row):
            if not (is_series(given) or is_frame(given)) or given is not table and name in ("map", "isin"):
                return given
            place = _matched(value.index, given.index, [row])[0]
            if place is None:
                raise Ends(f"{name}: no row of an argument has the label")
            return given.iloc[[place]]

        one = _call(of_row(table), name, (list(map(of_row, positional)), {k: of_row(v) for k, v in named.items()}))
        if not close(at(one, 0, cells.column), at(value, row, cells.column)):
            raise Ends(f"{name}: the row alone does not give the cell")


def _chosen(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows a method that keeps the cell, or takes another value: where, mask, fillna and combine_first."""
    table = receiver.value
    if not isinstance(selector, Cells):
        return None
    found, kept, others = Found(event, ""), [], []
    rows = _matched(value.index, table.index, selector.rows)
    column = selector.column
    if is_frame(table):
        if not is_frame(value) or not value.columns.equals(table.columns) or not table.columns.is_unique:
            raise Ends(f"{name}: not further")
    for row, before in zip(selector.rows, rows):
        is_kept = before is not None and same(at(table, before, column), at(value, row, column))
        (kept if is_kept else others).append(row)
    if kept:
        cells = Cells(_matched(value.index, table.index, kept), column)
        show(found, table, cells)
        found.parts.append((receiver, cells))
    if not others:
        return found
    found.what = f"{name} took the other value"
    if name in ("fillna", "combine_first"):  # in place of those that are missing
        show(found, table, Cells([row for row in _matched(value.index, table.index, others) if row is not None], column))
    roles = [role for role, _ in event.expression.parts]
    wanted = 0 if name in ("fillna", "combine_first") else 1
    places = [n for n, role in enumerate(roles) if role == "argument"][wanted:]
    places += [n for n, role in enumerate(roles) if role in ("other", "value")]
    if not places:
        found.what = f"{name}: the cell is missing (NaN)"
        return found
    part, given = event.parts[places[0]], event.operand(places[0])
    if fact_values.is_scalar(given):
        if not all(close(given, at(value, row, column)) for row in others):
            raise Ends(f"{name}: what it gave is not what was computed again")
        found.cells.append(cell_python.cell(given))
        if part is not None:
            found.parts.append((part, ()))
        return found
    if is_dict(given) and is_frame(table) and part is not None and value.columns[column] in given:
        found.parts.append((part, (value.columns[column],)))
        return found
    if is_series(given) and is_series(table) or is_frame(given) and is_frame(table):
        inner = None
        if is_frame(given):
            if not given.columns.is_unique or value.columns[column] not in given.columns:
                raise Ends(f"{name}: not further")
            inner = given.columns.get_loc(value.columns[column])
        places = _matched(value.index, given.index, others)
        if None in places or part is None:
            raise Ends(f"{name}: not further")
        for place, row in zip(places, others):
            if not close(at(given, place, inner), at(value, row, column)):
                raise Ends(f"{name}: what it gave is not what was computed again")
        cells = Cells(places, inner)
        show(found, given, cells)
        found.parts.append((part, cells))
        return found
    raise Ends(f"{name}: the other value is not followed")


def _running(event: Event, name: str, value, cells: Cells, receiver: Event) -> Found:
    """Follows a method that computes a cell from the cells up to it, and checks it with these cells alone."""
    table = receiver.value
    need_plain(table)
    arguments = _arguments(event)
    if len(cells.rows) != 1:
        raise Ends(f"{name}: ask for one cell")
    row, column = cells.rows[0], cells.column
    if is_frame(table):
        raise Ends(f"{name} of a table: not further")
    if name in ("rank", "bfill", "interpolate"):
        used = list(range(len(table)))
    elif name in ("diff", "pct_change"):
        periods = next(iter(arguments[0]), arguments[1].get("periods", 1))
        used = [each for each in (row - periods, row) if 0 <= each < len(table)]
    elif name == "ffill":
        used = [row]
        while used[0] > 0 and fact_values.is_missing(at(table, used[0], None)):
            used = [used[0] - 1]
    else:
        used = list(range(row + 1))
    if name in ("rank", "bfill", "interpolate"):
        again = _call(table, name, arguments).iat[row]
    elif name == "ffill":
        again = at(table, used[0], None)
    else:
        again = _call(table.iloc[used], name, arguments).iat[-1]
    if not close(again, at(value, row, column)):
        raise Ends(f"{name}: what it gave is not what was computed again")
    found = Found(event, f"{name} of {fact_values.count(len(used), 'row')}")
    before = Cells(used)
    show(found, table, before)
    found.parts.append((receiver, before))
    return found


def _windowed(event: Event, name: str, value, selector, receiver: Event, behind: Event) -> Found:
    """Follows rolling(n).mean() and expanding().sum() of a Series."""
    table = behind.value
    if not isinstance(selector, Cells) or not is_series(table) or not is_series(value) or len(selector.rows) != 1:
        raise Ends(f"{name} of windows: not further")
    maker = fact_tables.called_name(receiver.expression.node)
    if maker not in ("rolling", "expanding") or _arguments(event) != ([], {}):
        raise Ends(f"{name} of windows: not further")
    row = selector.rows[0]
    positional, named = _arguments(receiver)
    window = next(iter(positional), named.get("window"))
    if maker == "expanding":
        used = list(range(row + 1))
    elif isinstance(window, int) and not named.get("center"):
        used = list(range(max(0, row - window + 1), row + 1))
    else:
        raise Ends("windows of time are not followed")
    again = getattr(_call(table.iloc[used], maker, (positional, named)), name)().iat[-1]
    if not close(again, at(value, row, None)):
        raise Ends(f"{name}: what it gave is not what was computed again")
    found = Found(event, f"{maker} {name} of {fact_values.count(len(used), 'row')}")
    show(found, table, Cells(used))
    found.parts.append((behind, Cells(used)))
    return found


def _reduced(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows s.sum(), and one value of df.sum()."""
    table = receiver.value
    need_plain(table)
    arguments = _arguments(event)
    for each in (*arguments[0], *arguments[1].values()):
        if callable(each):
            raise Ends(f"{name}: a function of the program computed it")
    if is_series(table):
        if isinstance(selector, Cells):
            raise Ends(f"{name}: not further")
        column, rows, result = None, list(range(len(table))), value
        again = _call(table, name, arguments)
    else:
        if not isinstance(selector, Cells) or not is_series(value) or len(selector.rows) != 1:
            raise Ends(f"{name} of a table: not further")
        result = at(value, selector.rows[0], None)
        made = _call(table, name, arguments)
        if not is_series(made) or not made.index.equals(value.index):
            raise Ends(f"{name}: what it gave is not what was computed again")
        again = made.iat[selector.rows[0]]
        if arguments[1].get("axis") in (1, "columns") or arguments[0][:1] in ([1], ["columns"]):
            return _row_reduced(event, name, selector, receiver, again, result)
        if not table.columns.is_unique:
            raise Ends(f"{name}: columns with the same name are not followed")
        column, rows = table.columns.get_loc(value.index[selector.rows[0]]), list(range(len(table)))
    if not close(again, result):
        raise Ends(f"{name}: what it gave is not what was computed again")
    values = table.iloc[:, column] if column is not None else table
    return _of_rows(event, receiver, values, rows, column, name, result, "")


def _row_reduced(event, name, selector, receiver, again, result) -> Found:
    table, row = receiver.value, selector.rows[0]
    if not close(again, result):
        raise Ends(f"{name}: what it gave is not what was computed again")
    found = Found(event, f"{name} of the row gave {cell_python.short(result)}")
    for column in range(table.shape[1]):
        show(found, table, Cells([row], column))
        found.parts.append((receiver, Cells([row], column)))
    return found


def _of_rows(event, source: Event, values, rows: list, column, name: str, result, where: str) -> Found:
    """Returns the step of a value that was computed from rows of a column."""
    np = numpy()
    used = rows
    some = values.iloc[rows]
    if name in ("min", "max", "idxmin", "idxmax", "first", "last"):
        present = [row for row in rows if not fact_values.is_missing(values.iat[row])]
        if name in ("first", "last"):
            used = present[:1] if name == "first" else present[-1:]
        elif present:
            best = (min if "min" in name else max)(values.iat[row] for row in present)
            used = [row for row in present if same(values.iat[row], best)][:1]
    found = Found(event, "")
    total = f"{fact_values.count(len(rows), 'row')}{where}"
    missing = int(some.isna().sum())
    found.what = f"{name} of {total} gave {cell_python.short(result)}"
    if missing and name not in ("size", "len"):
        found.what += f"; {missing} missing (NaN)"
    if name == "mean" and getattr(some.dtype, "kind", "O") in "iuf" and len(rows):
        found.what += f"; their sum is {cell_python.short(some.sum())}"
    show(found, source.value, Cells(used, column))
    if used is not rows:
        found.of = len(rows)
    del np
    if len(used) > MAX_CELLS_FOLLOWED:
        found.ends = f"{len(used)} rows are not followed one by one"
    elif name not in ("size",):
        found.parts.append((source, Cells(used, column)))
    else:
        found.parts.append((source, Cells(used, column)))
    return found


# -- groups


def _is_grouped(event: Event) -> bool:
    return type(event.value).__name__ in ("DatetimeIndexResampler", "Resampler", "DatetimeIndexResamplerGroupby")


class _Groups:
    """Groups of rows: the table, the call that made them, and the columns that were selected."""

    def __init__(self, event: Event) -> None:
        self.columns: list | None = None
        self.is_one = False
        while True:
            node = event.expression.node
            name = fact_tables.called_name(node)
            receiver = event.part("receiver")
            if name in ("groupby", "resample"):
                break
            if receiver is None and event.source is not None:
                event = event.source
                continue
            if event.kind == "name" and event.thing is None and event.source is None or receiver is None:
                raise Ends("what made the groups is not followed")
            if isinstance(node, ast.Subscript):
                key = event.operand_of(event.expression.parts[1][1], event.parts[1])
                self.is_one = fact_values.is_scalar(key)
                self.columns = [key] if self.is_one else list(key)
            elif isinstance(node, ast.Attribute):
                self.is_one, self.columns = True, [node.attr]
            else:
                raise Ends("what made the groups is not followed")
            event = receiver
        source = event.part("receiver")
        if source is None or not is_table(source.value) or is_array(source.value):
            raise Ends("what was grouped is not followed")
        self.source, self.maker, self.name = source, event, name
        self.table = source.value
        need_plain(self.table)
        positional, named = _arguments(event)
        for each in (*positional, *named.values()):
            if callable(each) or is_dict(each):
                raise Ends(f"{name}: groups by a function are not followed")
        self.is_flat = named.get("as_index") is False
        self._arguments = positional, named

    def rows_of_groups(self):
        """Returns the rows of each group as a Series of lists, or a DataFrame with the lists in the last column."""
        twin = _twin(self.table)
        return _call(twin, self.name, self._arguments)[ROW].agg(list)

    def regroup(self, frame):
        """Groups some rows in the same way."""
        return _call(frame, self.name, self._arguments)


def _grouped(trace, event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    groups = _Groups(receiver)
    if name in ("apply", "pipe", "filter"):
        raise Ends(f"{name}: a function of the program computed it")
    if not isinstance(selector, Cells):
        if name == "ngroups":
            return None
        raise Ends(f"{name} of groups: not further")
    if name in _GROUP_EACH:
        return _group_each(event, name, value, selector, groups)
    if name not in _REDUCE and name not in ("agg", "aggregate"):
        raise Ends(f"{name} of groups: not further")
    lists = groups.rows_of_groups()
    flat = isinstance(lists, pandas().DataFrame)
    if len(lists) != len(value) or not flat and not lists.index.equals(value.index):
        raise Ends(f"{name}: the groups are others when computed again")
    table = groups.table
    if (
        isinstance(selector.column, tuple)
        or flat
        and isinstance(selector.column, int)
        and (selector.column < lists.shape[1] - 1)
    ):
        return _group_label(event, groups, lists, selector, flat)
    if len(selector.rows) != 1:
        return _several_groups(trace, event, name, value, selector, receiver)
    row = selector.rows[0]
    rows = lists[ROW].iat[row] if flat else lists.iat[row]
    rows = rows if isinstance(rows, list) else []
    column, function = _aggregate(event, name, value, selector, groups, lists)
    result = at(value, row, selector.column)
    group = label(value, row) if not flat else ", ".join(text_of(each) for each in lists.iloc[row, :-1])
    if not rows:
        return Found(event, f"{name}: the group {group} has no rows")
    place = column
    if place is None:
        place = 0 if is_frame(table) else None
    values = table.iloc[:, place] if is_frame(table) else table
    found = _of_rows(event, groups.source, values, rows, place, function or name, result, f" in the group {group}")
    found.of = len(table)
    if name == "size":
        found.cells = []
    if not function:
        found.what += "; not checked: a function of the program computed it"
        found.ends = f"{name}: what the function made of the rows is not followed"
        found.what = found.what.replace(f"{name} of", "a function got", 1)
        return found
    part = values.iloc[rows]
    again = (
        len(rows)
        if function == "size"
        else getattr(part, function)()
        if function not in ("first", "last")
        else (part.dropna().iloc[0 if function == "first" else -1] if part.notna().any() else None)
    )
    if not close(again, result) and not (fact_values.is_missing(result) and fact_values.is_missing(again)):
        if name in ("agg", "aggregate", *_REDUCE) and _arguments(event)[0][:1] + list(_arguments(event)[1].values()):
            again = _regrouped(event, name, groups, rows, value, selector)
        if again is None or not close(again, result):
            raise Ends(f"{name}: the rows of the group alone give {text_of(again)}, and not the cell")
    return found


def _regrouped(event, name, groups: _Groups, rows: list, value, selector):
    """Computes one group again with the arguments of the call."""
    frame = groups.table.iloc[rows]
    made = groups.regroup(frame)
    if groups.columns is not None:
        made = made[groups.columns[0] if groups.is_one else groups.columns]
    again = _call(made, name, _arguments(event))
    if len(again) != 1:
        return None
    return at(again, 0, selector.column)


def _group_label(event, groups: _Groups, lists, cells: Cells, flat: bool) -> Found:
    """Follows a label of a group to the first row of the group."""
    level = cells.column[1] if isinstance(cells.column, tuple) else cells.column
    positional, named = groups._arguments
    keys = positional[0] if positional else named.get("by")
    keys = keys if isinstance(keys, list) else [keys]
    found = Found(event, "")
    key = keys[level] if level < len(keys) else None
    if not fact_values.is_scalar(key) or not is_frame(groups.table) or key not in groups.table.columns:
        raise Ends("the label of a group: not further")
    column = groups.table.columns.get_loc(key)
    for row in cells.rows:
        rows = lists[ROW].iat[row] if flat else lists.iat[row]
        if not isinstance(rows, list) or not rows:
            continue
        found.what = f"the label of a group of {fact_values.count(len(rows), 'row')}"
        show(found, groups.table, Cells(rows[:1], column))
        found.parts.append((groups.source, Cells(rows[:1], column)))
    return found


def _several_groups(trace, event, name, value, selector, receiver) -> Found:
    found = Found(event, "")
    for row in selector.rows[:200]:
        one = _grouped(trace, event, name, value, Cells([row], selector.column), receiver)
        assert one is not None
        found.what = f"{name} of several groups"
        found.parts += one.parts
        found.rows += one.rows
        found.labels += one.labels
        found.cells += one.cells[:20]
        found.of, found.ends = one.of, found.ends or one.ends
    return found


def _aggregate(event, name: str, value, selector: Cells, groups: _Groups, lists) -> tuple:
    """Returns the position of the column that was aggregated, and the name of the function, or "" if it is unknown."""
    table = groups.table
    if name == "size":
        return None, "size"
    column: typing.Any = None
    function: typing.Any = name
    if is_frame(value):
        column = value.columns[selector.column]
    elif groups.is_one and groups.columns:
        column = groups.columns[0]
    if name in ("agg", "aggregate"):
        asked: typing.Any = None
        named = {}
        for n, (role, each) in enumerate(event.expression.parts):
            if role == "argument" and asked is None:
                asked = _function_names(event, n)
            elif role not in ("receiver", "argument"):
                named[role] = _function_names(event, n)
        if asked is None and named:
            asked = named.get(column if isinstance(column, str) else "")
            if isinstance(asked, tuple):
                column, function = asked
            else:
                function = asked
                column = groups.columns[0] if groups.is_one and groups.columns else None
        elif isinstance(asked, dict):
            top = column[0] if isinstance(column, tuple) else column
            chosen = asked.get(top)
            function = column[-1] if isinstance(chosen, list) and isinstance(column, tuple) else chosen
            column = top
        elif isinstance(asked, list):
            function = column[-1] if isinstance(column, tuple) else column
            column = column[0] if isinstance(column, tuple) else groups.columns[0] if groups.columns else None
        else:
            function = asked
    if is_series(table):
        return None, function if isinstance(function, str) and function in _REDUCE else ""
    if isinstance(column, tuple) and table.columns.nlevels == 1:
        column = column[0]
    if column not in table.columns:
        raise Ends(f"{name}: the column of the groups is not known")
    return table.columns.get_loc(column), function if isinstance(function, str) and function in _REDUCE else ""


def _function_names(event: Event, n: int):
    """Returns the names of functions of an argument of agg; an unknown one is ""."""
    each = event.expression.parts[n][1]
    part = event.parts[n]
    if part is not None and isinstance(part.expression.node, (ast.Dict, ast.List, ast.Tuple)):
        node = part.expression.node
        if isinstance(node, ast.Dict):
            keys = range(0, len(part.expression.parts), 2)
            return {_function_name(part, k): _function_names(part, k + 1) for k in keys}
        made = [_function_name(part, k) for k in range(len(part.expression.parts))]
        return tuple(made) if isinstance(node, ast.Tuple) else made
    if part is not None and type(part.value) in (dict, list, tuple):
        return part.value
    del each
    return _function_name(event, n)


def _function_name(event: Event, n: int):
    try:
        value = event.operand(n)
    except Ends:
        part = event.parts[n] if n < len(event.parts) else None
        code = part.expression.code if part is not None else ""
        return code if code in ("sum", "len", "min", "max", "any", "all") else ""
    if callable(value) and fact_values.package_of(value) == "":
        return getattr(value, "__name__", "") if type(value).__name__ == "builtin_function_or_method" else ""
    return value


def looped(turn: Event, source: Event, name: str, k: int, path: tuple, cells: Cells) -> Found:
    """Returns where a table came from that is the variable of a loop: a row of iterrows, or a group."""
    receiver = source.part("receiver")
    if name == "iterrows" and path == (1,) and receiver is not None and is_frame(receiver.value):
        found = Found(turn, "a row of the table")
        for row in cells.rows:
            show(found, receiver.value, Cells([k], row))
            found.parts.append((receiver, Cells([k], row)))
        return found
    if path == (1,) and "GroupBy" in type(source.value).__name__:
        groups = _Groups(source)
        lists = groups.rows_of_groups()
        lists = lists[ROW] if isinstance(lists, pandas().DataFrame) else lists
        rows = [each for each in lists if isinstance(each, list) and each][k]
        column = cells.column
        if is_frame(groups.table) and groups.columns is not None:
            if not groups.is_one:
                raise Ends("a loop over groups of some columns is not followed")
            column = groups.table.columns.get_loc(groups.columns[0])
        elif isinstance(column, tuple):
            raise Ends("the labels of a group are not followed")
        before = Cells([rows[row] for row in cells.rows], column)
        found = Found(turn, f"group {k} of {fact_values.count(len(rows), 'row')}")
        show(found, groups.table, before)
        found.parts.append((groups.source, before))
        return found
    raise Ends("a table in a loop is not followed")


def _group_each(event, name: str, value, cells: Cells, groups: _Groups) -> Found:
    """Follows a method of groups that gives one value for each row."""
    table = groups.table
    positional, named = _arguments(event)
    if len(cells.rows) != 1 or len(value) != len(table):
        raise Ends(f"{name} of groups: ask for one cell")
    row = cells.rows[0]
    lists = groups.rows_of_groups()
    lists = lists[ROW] if isinstance(lists, pandas().DataFrame) else lists
    rows = next((each for each in lists if isinstance(each, list) and row in each), None)
    if rows is None:
        return Found(event, f"{name}: the row is in no group")
    column = None
    if is_frame(table):
        key = value.columns[cells.column] if is_frame(value) else groups.columns[0] if groups.columns else None
        if key is None and name != "cumcount":
            raise Ends(f"{name} of groups: the column is not known")
        column = table.columns.get_loc(key) if key is not None else 0
    made = groups.regroup(table.iloc[rows])
    if groups.columns is not None:
        made = made[groups.columns[0] if groups.is_one else groups.columns]
    again = at(_call(made, name, (positional, named)), rows.index(row), cells.column)
    if not close(again, at(value, row, cells.column)):
        raise Ends(f"{name}: the rows of the group alone give {text_of(again)}, and not the cell")
    used = rows
    if name in ("cumsum", "cumprod", "cummax", "cummin", "cumcount"):
        used = rows[: rows.index(row) + 1]
    elif name == "shift" and not named:
        periods = positional[0] if positional else 1
        place = rows.index(row) - periods
        used = [rows[place]] if 0 <= place < len(rows) else []
    elif name == "diff" and not named:
        periods = positional[0] if positional else 1
        used = [rows[n] for n in (rows.index(row) - periods, rows.index(row)) if 0 <= n < len(rows)]
    function = f" {positional[0]}" if name == "transform" and positional and isinstance(positional[0], str) else ""
    found = Found(event, f"{name}{function} of {fact_values.count(len(used), 'row')} of the group of this row")
    show(found, table, Cells(used, column))
    if name != "cumcount" and used:
        found.parts.append((groups.source, Cells(used, column)))
    return found


# -- several tables


def _merge(event: Event, name: str, value, selector, receiver: "Event | None") -> "Found | None":
    """Follows a merge to the row of each table."""
    if not isinstance(selector, Cells):
        return None
    parts = [(role, n) for n, (role, _) in enumerate(event.expression.parts)]
    tables = [n for role, n in parts if role in ("argument", "right", "left", "other")]
    first = receiver if receiver is not None and is_table(receiver.value) else None
    left_event = first if first is not None else event.parts[tables[0]]
    right_at = tables[0] if first is not None else tables[1]
    right_event = event.parts[right_at]
    if left_event is None or right_event is None:
        raise Ends(f"{name}: one of the tables is not known")
    left, right = left_event.value, right_event.value
    if not is_frame(left) or not (is_frame(right) or is_series(right)):
        raise Ends(f"{name}: one of the tables is not known")
    if is_series(right) and right.name is None:
        raise Ends(f"{name}: not further")
    need_plain(left), need_plain(right)
    right_frame = right.to_frame() if is_series(right) else right
    positional, named = [], {}
    for role, n in parts:
        if role == "receiver" or n == right_at or n == tables[0] and first is None:
            continue
        if role == "argument":
            positional.append(event.operand(n))
        else:
            named[role] = event.operand(n)
    twin, other = _twin(left), _twin(right_frame).rename(columns={ROW: OTHER})
    made = getattr(twin, name)(other, *positional, **named)
    if len(made) != len(value) or made.shape[1] != value.shape[1] + 2:
        raise Ends(f"{name}: what it gave is not what was computed again")
    if isinstance(selector.column, tuple):
        raise Ends(f"{name}: labels are not followed")
    column = value.columns[selector.column]
    found = Found(event, "")
    sides = [(left_event, left, ROW, 0), (right_event, right_frame, OTHER, 1)]
    suffixes = named.get("suffixes", ("_x", "_y")) if name == "merge" else (
        named.get("lsuffix", ""), named.get("rsuffix", ""))  # fmt: skip
    rows_by_side: list = []
    for _, table, number, _ in sides:
        numbers = made[number].to_numpy()
        rows_by_side.append([int(numbers[row]) if numbers[row] == numbers[row] else None for row in selector.rows])
    chosen = None
    for side, table, _, n in sides:
        rows = rows_by_side[n]
        source = _merged_column(column, table, sides[1 - n][1], suffixes[n])
        if source is None:
            continue
        kept = [row for row in rows if row is not None]
        place = table.columns.get_loc(source)
        for row, place_before in zip(selector.rows, rows):
            if place_before is not None and not same(at(table, place_before, place), at(value, row, selector.column)):
                break
        else:
            if kept and chosen is None:
                chosen = n
                show(found, table, Cells(kept, place))
                found.parts.append((side, Cells(kept, place) if is_frame(side.value) else Cells(kept)))
    other_side = 1 - chosen if chosen is not None else None
    found.side = chosen
    found.what = (
        f"{name}: from the {('left', 'right')[chosen]} table"
        if chosen is not None
        else (f"{name}: no row of the table with {column} matched, and the cell is missing (NaN)")
    )
    found.of = len(sides[chosen][1]) if chosen is not None else None
    if chosen is None:
        result = at(value, selector.rows[0], selector.column)
        if not fact_values.is_missing(result):
            raise Ends(f"{name}: what it gave is not what was computed again")
        other_side = next((n for n in (0, 1) if rows_by_side[n][0] is not None), None)
    if other_side is not None and len(selector.rows) == 1:
        row = rows_by_side[other_side][0]
        other_name = ("left", "right")[other_side]
        if row is None:
            found.what += f"; no row of the {other_name} table matched"
        else:
            where = sides[other_side][1]
            found.what += f"; joined with row {label(where, row)} of the {other_name} table"
    return found


def _merged_column(column, table, other, suffix):
    """Returns the column of a table that a column of a merge is, or None."""
    if column in table.columns:
        return column
    if isinstance(column, str) and suffix and column.endswith(suffix):
        name = column[: -len(suffix)]
        if name in table.columns and name in other.columns:
            return name
    return None


def _concat(event: Event, value, cells: Cells) -> Found:
    """Follows pd.concat to the table that a row or a column comes from."""
    np, pd = numpy(), pandas()
    container = event.part("argument", "objs")
    if container is None:
        raise Ends("concat: its tables are not known")
    tables = container.value
    named = {role: event.operand(n) for n, (role, _) in enumerate(event.expression.parts) if role not in (
        "argument", "objs", "receiver")}  # fmt: skip
    keys: list = list(tables) if is_dict(tables) else list(range(len(tables)))
    items = [tables[key] for key in keys] if is_dict(tables) else list(tables)
    if not all(is_frame(each) or is_series(each) for each in items):
        raise Ends("concat: its tables are not known")
    twins, begin = [], [0]
    for each in items:
        need_plain(each)
        twins.append(cell_paths.ids_of(each) + begin[-1])
        begin.append(begin[-1] + each.size)
    made = pd.concat(dict(zip(keys, twins)) if is_dict(tables) else twins, **named)
    if made.shape != value.shape or isinstance(cells.column, tuple):
        raise Ends("concat: what it gave is not what was computed again")
    found = Found(event, "")
    for row, number in zip(cells.rows, _numbers_at(made, cells)):
        if number != number:
            found.what = "concat: the table of the row has no such column"
            continue
        n = int(np.searchsorted(begin, number, side="right")) - 1
        table = items[n]
        before = cell_paths.cells_of(table, [int(number) - begin[n]])
        if not same(at(table, before.rows[0], before.column), at(value, row, cells.column)):
            raise Ends("concat: what it gave is not what was computed again")
        show(found, table, before)
        found.what, found.side = f"concat: from table {n + 1} of {len(items)}", n
        found.parts.append((_inner(container, keys[n]), before))
    return found


def _inner(container: Event, key) -> "Event | None":
    """Returns the event of an item of a list display, or None."""
    node = container.expression.node
    if isinstance(node, (ast.List, ast.Tuple)) and isinstance(key, int):
        return container.parts[key]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and isinstance(key, int) and key < len(container.turns):
        return container.turns[key]
    if isinstance(node, ast.Dict):
        for k in range(0, len(container.expression.parts), 2):
            if same(container.operand(k), key):
                return container.parts[k + 1]
    if container.thing is not None:
        for change in container.thing.history:
            if fact_tables.called_name(change.expression.node) == "append" and change.before == key:
                return change.part("argument")
    raise Ends("concat: where its table comes from is not followed")


def _pivot(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows a cell of a pivot to the rows of the table that it aggregates."""
    if not isinstance(selector, Cells) or len(selector.rows) != 1:
        raise Ends(f"{name}: ask for one cell")
    table = receiver.value
    need_plain(table)
    positional, named = _arguments(event)
    if positional:
        named = {**dict(zip(("values", "index", "columns", "aggfunc"), positional)), **named}
    values = named.get("values")
    if isinstance(values, list) and len(values) == 1:
        values = values[0]
    if not fact_values.is_scalar(values) or values is None or values not in table.columns or named.get("margins"):
        raise Ends(f"{name}: not further")
    function = named.get("aggfunc", "mean") if name == "pivot_table" else "sum"
    twin = _twin(table)
    kept = {k: v for k, v in named.items() if k in ("index", "columns", "observed", "dropna", "sort")}
    lists = twin.pivot_table(values=ROW, aggfunc=list, **kept)
    if isinstance(selector.column, tuple):
        raise Ends(f"{name}: labels are not followed")
    row, column = selector.rows[0], selector.column
    if lists.shape != value.shape or not lists.index.equals(value.index):
        raise Ends(f"{name}: what it gave is not what was computed again")
    rows = lists.iat[row, column]
    result = value.iat[row, column]
    where = f"{label(value, row)}, {column_name(value, column)}"
    if not isinstance(rows, list):
        return Found(event, f"{name}: no row has {where}")
    series = table[values]
    if not isinstance(function, str) or function not in _REDUCE:
        raise Ends(f"{name}: a function of the program computed it")
    part = series.iloc[rows]
    again = (
        len(rows)
        if function == "size"
        else getattr(part, function)()
        if function not in ("first", "last")
        else (part.iloc[0 if function == "first" else -1])
    )
    if not close(again, result):
        raise Ends(f"{name}: the rows alone give {text_of(again)}, and not the cell")
    found = _of_rows(event, receiver, series, rows, table.columns.get_loc(values), function, result, f" with {where}")
    found.of = len(table)
    return found


def _melt(event: Event, value, selector, receiver: Event) -> Found:
    """Follows a cell of a melted table."""
    if not isinstance(selector, Cells) or not isinstance(selector.column, int):
        raise Ends("melt: not further")
    table = receiver.value
    arguments = _arguments(event)
    ids = cell_paths.ids_of(table)
    made = _call(ids, "melt", arguments)
    if made.shape != value.shape:
        raise Ends("melt: what it gave is not what was computed again")
    positional, named = arguments
    variable = named.get("var_name", table.columns.name or "variable")
    if value.columns[selector.column] == variable:
        return Found(event, "melt: the name of a column")
    return back(event, receiver, table, value, selector, "melt", _numbers_at(made, selector))


def _assign(event: Event, value, selector, receiver: Event) -> "Found | None":
    """Follows df.assign(name=value)."""
    table = receiver.value
    if not isinstance(selector, Cells) or not isinstance(selector.column, int):
        return None
    column = value.columns[selector.column]
    for n, (role, _) in enumerate(event.expression.parts):
        if role == column and role not in ("receiver", "argument"):
            event.operand(n)
            part = event.parts[n]
            if part is not None and type(part.value).__name__ == "function":
                raise Ends("assign: a function of the program computed it")
            found = _assigned(event, part, value, selector, f"assign of the column {column}")
            return found
    found = Found(event, "")
    found.parts.append((receiver, Cells(selector.rows, table.columns.get_loc(column))))
    return found


def _value_counts(event: Event, value, selector, receiver: Event) -> "Found | None":
    table = receiver.value
    need_plain(table)
    if (
        not isinstance(selector, Cells)
        or not is_series(table)
        or len(selector.rows) != 1
        or selector.column is not None
    ):
        raise Ends("value_counts: not further")
    counted = value.index[selector.rows[0]]
    rows = [n for n, each in enumerate(table.array) if same(each, counted)]
    positional, named = _arguments(event)
    if positional or named.get("normalize") or named.get("bins"):
        raise Ends("value_counts: not further")
    if len(rows) != int(value.iat[selector.rows[0]]):
        raise Ends("value_counts: the count is another")
    found = Found(event, f"counted {fact_values.count(len(rows), 'row')} with {cell_python.short(counted)}")
    show(found, table, Cells(rows))
    found.parts.append((receiver, Cells(rows)))
    return found


# -- lists and tables


def _as_list(event: Event, value, selector, receiver: Event) -> "Found | None":
    table = receiver.value
    if is_frame(table):
        if isinstance(selector, Cells) and is_array(value) and value.shape == table.shape:
            columns = {row % table.shape[1] for row in selector.rows}
            found = Found(event, "")
            for column in columns:
                rows = [row // table.shape[1] for row in selector.rows if row % table.shape[1] == column]
                found.parts.append((receiver, Cells(rows, column)))
            return found
        return None
    rows = selector.rows if isinstance(selector, Cells) else selector[:1]
    if not rows:
        return None
    found = Found(event, "")
    found.parts.append((receiver, Cells(rows)))
    return found


def _to_dict(event: Event, value, selector, receiver: Event) -> "Found | None":
    table = receiver.value
    positional, named = _arguments(event)
    orient = next(iter(positional), named.get("orient", "dict"))
    if not cell_paths.are_labels_plain(table) or not isinstance(selector, tuple):
        raise Ends("to_dict: not further")
    found = Found(event, "")
    if is_series(table) and len(selector) == 1 and table.index.is_unique:
        found.parts.append((receiver, Cells([table.index.get_loc(selector[0])])))
        return found
    if not is_frame(table) or len(selector) < 2 or not table.columns.is_unique:
        raise Ends("to_dict: not further")
    if orient == "records":
        row, column = selector[0], table.columns.get_loc(selector[1])
    elif orient in ("dict", "index") and table.index.is_unique:
        names = selector[:2] if orient == "index" else selector[1::-1]
        row, column = table.index.get_loc(names[0]), table.columns.get_loc(names[1])
    elif orient == "list":
        row, column = selector[1], table.columns.get_loc(selector[0])
    else:
        raise Ends("to_dict: not further")
    show(found, table, Cells([row], column))
    found.parts.append((receiver, Cells([row], column)))
    return found


def _function(trace, event: Event, node, name: str, value, selector) -> "Found | None":
    """Follows functions of pandas, and functions of Python that get a table."""
    if name in ("db_frame",):
        found = Found(event, "row of a query")
        if isinstance(selector, Cells):
            show(found, value, selector)
        return found
    first = event.part("argument", "data", "arg")
    if name == "concat" and isinstance(selector, Cells):
        return _concat(event, value, selector)
    if name == "merge":
        return _merge(event, name, value, selector, None)
    if name in ("DataFrame", "Series") and isinstance(selector, Cells):
        return _constructed(event, name, value, selector, first)
    if name in ("to_datetime", "to_numeric", "to_timedelta") and first is not None and is_series(first.value):
        return _each(event, name, value, selector, first)
    if name == "read_csv" and isinstance(selector, Cells):
        found = Found(event, "read from a file")
        if not isinstance(selector.column, tuple):
            show(found, value, selector)
        return found
    if name in ("list", "tuple", "sorted") and first is not None and is_series(first.value) and name != "sorted":
        found = Found(event, "")
        if selector:
            found.parts.append((first, Cells(selector[:1])))
        return found
    if name == "len" and first is not None and is_table(first.value):
        found = Found(event, f"counted {fact_values.count(len(first.value), 'row')}")
        found.of = len(first.value)
        table = first.value
        if is_frame(table) and table.shape[1] and len(table):
            used = Cells(range(min(len(table), MAX_CELLS_FOLLOWED)), 0)
            found.rows = list(used.rows)
            found.labels = [label(table, row) for row in used.rows]
            found.parts.append((first, used))
        elif is_series(table):
            used = Cells(range(min(len(table), MAX_CELLS_FOLLOWED)))
            found.rows, found.labels = list(used.rows), [label(table, row) for row in used.rows]
            found.parts.append((first, used))
        return found
    if (
        name in ("sum", "min", "max", "mean", "median", "std", "any", "all")
        and first is not None
        and is_series(first.value)
    ):
        if isinstance(selector, Cells):
            return None
        method = getattr(first.value, name)
        if not close(method(), value):
            raise Ends(f"{name}: what it gave is not what was computed again")
        rows = list(range(len(first.value)))
        return _of_rows(event, first, first.value, rows, None, name, value, "")
    return None


def _constructed(event: Event, name: str, value, cells: Cells, data: "Event | None") -> "Found | None":
    """Follows a cell of a new DataFrame or Series to the element of the list, dict or array."""
    if data is None:
        raise Ends("its data is not known")
    given = data.value
    found = Found(event, "")
    column = cells.column
    if isinstance(column, tuple):
        raise Ends("labels of a new table: not further")
    if is_array(given):
        width = value.shape[1] if is_frame(value) else 1
        flat = [row * width + (column or 0) for row in cells.rows]
        if given.size != value.size:
            raise Ends("its data is of another size")
        if not all(same(given.flat[n], at(value, row, column)) for n, row in zip(flat, cells.rows)):
            raise Ends("what it gave is not what was computed again")
        found.parts.append((data, Cells(flat)))
        return found
    if is_table(given):
        if given.shape == value.shape and given.index.equals(value.index):
            found.parts.append((data, Cells(cells.rows, column if is_frame(given) else None)))
            return found
        raise Ends("a table of a table: not further")
    if is_frame(value):
        label_of_column = value.columns[column]
        if is_dict(given):
            if label_of_column not in given:
                return Found(event, "the column is new")
            inner = given[label_of_column]
            part = None
            if isinstance(data.expression.node, ast.Dict):
                for k in range(0, len(data.expression.parts), 2):
                    if same(data.operand(k), label_of_column):
                        part = data.parts[k + 1]
            if is_series(inner):
                if part is None:
                    raise Ends("a column of a dict: not further")
                rows = [row for row in _matched(value.index, inner.index, cells.rows) if row is not None]
                found.parts.append((part, Cells(rows)))
                return found
            if is_array(inner):
                if part is None:
                    raise Ends("a column of a dict: not further")
                found.parts.append((part, Cells(cells.rows)))
                return found
            if type(inner) in CONTAINERS and not is_dict(inner) and len(inner) == len(value):
                for row in cells.rows:
                    _check_element(inner[row], at(value, row, column))
                    found.parts.append((part, (row,)) if part is not None else (data, (label_of_column, row)))
                _written(found, event, value, cells)
                return found
            if is_dict(inner) and value.index.is_unique:
                for row in cells.rows:
                    key = value.index[row]
                    if key in inner:
                        found.parts.append((part, (key,)) if part is not None else (data, (label_of_column, key)))
                return found
            if fact_values.is_scalar(inner) and part is not None:
                found.parts.append((part, ()))
                return found
            if fact_values.is_scalar(inner):
                _written(found, event, value, cells)
                return found
            raise Ends("a column of a dict: not further")
        if type(given) in CONTAINERS and len(given) == len(value):
            for row in cells.rows:
                inner = given[row]
                if is_dict(inner):
                    if label_of_column not in inner:
                        found.what = f"the element has no key {label_of_column}: the cell is missing (NaN)"
                        continue
                    _check_element(inner[label_of_column], at(value, row, column))
                    found.parts.append((data, (row, label_of_column)))
                elif type(inner) in (list, tuple) and column < len(inner):
                    _check_element(inner[column], at(value, row, column))
                    found.parts.append((data, (row, column)))
                else:
                    raise Ends("its elements are not followed")
            _written(found, event, value, cells)
            return found
        raise Ends("its data is not followed")
    if is_dict(given):
        for row in cells.rows:
            key = value.index[row]
            if fact_values.is_plain_key(key) and key in given:
                found.parts.append((data, (key,)))
        _written(found, event, value, cells)
        return found
    if type(given) in CONTAINERS and len(given) == len(value):
        for row in cells.rows:
            _check_element(given[row], at(value, row, None))
            found.parts.append((data, (row,)))
        _written(found, event, value, cells)
        return found
    raise Ends("its data is not followed")


def _written(found: Found, event: Event, value, cells: Cells) -> None:
    """Shows the cells of a new table."""
    found.what = found.what or "the table is made here"
    show(found, value, cells)


def _check_element(given, made) -> None:
    if (
        fact_values.is_scalar(given)
        and not close(given, made)
        and not (type(given) is str or fact_values.is_missing(given))
    ):
        raise Ends("what it gave is not what was computed again")
