"""Where the cells of DataFrames and Series came from.

A twin of a table has numbers in place of its cells, or one more column of numbers. The operation runs again on the
twin, and the numbers in its result say which cells and rows it took. The cells of the result must then be those that
the run had."""

import ast

import cell_paths
import fact_tables
import fact_values
import fact_views
from cell_columns import REDUCE, RUNNING, chosen, each, each_of_several, reduced, running, windowed
from cell_groups import grouped, is_grouped
from cell_joins import assign, melted, merged, pivoted, value_counts
from cell_makers import as_list, function_of, to_dict
from cell_values import (
    INDEX,
    OPERATORS,
    Cells,
    Ends,
    Event,
    Found,
    cell,
    close,
    is_array,
    is_frame,
    is_series,
    is_table,
    numpy,
    pandas,
    short,
)
from cell_views import (
    ROW,
    arguments_of,
    as_cells,
    at,
    back,
    call_method,
    is_groups,
    matched,
    need_plain,
    numbers_at,
    show,
    table_behind,
    twin_of,
    wrapped,
)

# Methods that give some of the cells, at other places.
_MOVES = {
    "head", "tail", "sort_index", "copy", "reindex", "transpose", "rename", "set_axis", "to_frame",
    "squeeze", "unstack",
    "stack", "shift", "drop", "truncate", "xs", "droplevel", "swaplevel", "get", "take", "rename_axis", "add_prefix",
    "add_suffix", "reset_index", "first", "last", "pop", "filter", "reorder_levels", "set_flags", "asfreq", "to_period",
    "select_dtypes", "swapaxes", "infer_objects", "item",
}  # fmt: skip


# Methods that give some of the rows, depending on their values.
_ROWS = {"query", "sort_values", "dropna", "drop_duplicates", "nlargest", "nsmallest", "set_index", "explode"}


# Methods that compute each cell from the cell at its place.
_EACH = {
    "astype", "round", "abs", "fillna", "clip", "map", "replace", "isna", "notna", "isnull", "notnull",
    "isin", "between",
    "convert_dtypes", "to_datetime", "to_numeric", "upper", "lower", "strip", "lstrip", "rstrip", "title", "len",
    "contains", "startswith", "endswith", "slice", "zfill", "capitalize", "floor", "ceil", "normalize", "strftime",
    "tz_localize", "tz_convert", "total_seconds", "day_name", "month_name", "add", "sub", "mul", "div", "truediv",
    "floordiv", "mod", "pow", "radd", "rsub", "rmul", "rdiv", "rtruediv", "eq", "ne", "lt", "le", "gt", "ge", "where",
    "mask", "combine_first", "extract", "to_timedelta",
}  # fmt: skip


_EACH_ATTRIBUTES = {
    "year", "month", "day", "hour", "minute", "second", "weekday", "dayofweek", "date", "quarter", "days", "dayofyear",
    "seconds", "time", "day_of_week",
}  # fmt: skip


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
            return method(trace, event, node, name, value, selector, receiver)
        return function_of(trace, event, node, name, value, selector)
    return None


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
    if is_groups(table) and isinstance(selector, Cells):
        raise Ends("groups are not followed here")
    if not is_table(table) or is_array(table):
        if type(receiver.expression.node).__name__ == "Attribute" and receiver.expression.node.attr == "str":
            return each(event, "str", value, selector, table_behind(receiver))
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
        return back(event, base, table, wrapped(value, selector), Cells([0]), "took", [taken])
    if not is_table(taken) or taken.shape != value.shape:
        raise Ends("what it gave is not what was computed again")
    return back(event, base, table, value, selector, what, numbers_at(taken, selector))


def _attribute(trace, event: Event, node: ast.Attribute, value, selector) -> "Found | None":
    receiver = event.part("receiver")
    if receiver is None:
        return None
    name, table = node.attr, receiver.value
    if not is_table(table) or is_array(table):
        behind = table_behind(receiver)
        if behind is not None and name in _EACH_ATTRIBUTES and isinstance(selector, Cells):
            return each(event, name, value, selector, behind)
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
        return back(event, receiver, table, value, selector, "", numbers_at(cell_paths.ids_of(table).T, selector))
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
            rows = matched(value.index, given.index, cells.rows)
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
                found.cells.append(cell(given, "", part.expression.code))
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
        return f"gave {short(result)}"
    return "of the same row"


def method(trace, event: Event, node, name: str, value, selector, receiver: Event) -> "Found | None":
    table = receiver.value
    if type(table).__name__ == "module" or table is fact_values.OPAQUE:
        return None
    if is_groups(table) or is_grouped(receiver):
        return grouped(trace, event, name, value, selector, receiver)
    if not is_table(table) or is_array(table):
        behind = table_behind(receiver)
        if behind is not None and name in _EACH and is_series(behind.value):
            arguments_of(event)
            return each(event, name, value, selector, behind)
        if behind is not None and type(table).__name__ in ("Rolling", "Expanding"):
            return windowed(event, name, value, selector, receiver, behind)
        return None
    if isinstance(selector, Cells) and is_table(value) and not cell_paths.are_labels_plain(value):
        raise Ends("labels of the program's own classes are not followed")
    if name in ("apply", "applymap", "pipe", "agg", "aggregate") and name != "agg":
        raise Ends(f"{name}: a function of the program computed it")
    if name in ("tolist", "to_list", "to_numpy"):
        return as_list(event, value, selector, receiver)
    if name == "to_dict":
        return to_dict(event, value, selector, receiver)
    if name in ("merge", "join"):
        return merged(event, name, value, selector, receiver)
    if name in ("pivot_table", "pivot"):
        return pivoted(event, name, value, selector, receiver)
    if name == "melt":
        return melted(event, value, selector, receiver)
    if name == "assign":
        return assign(event, value, selector, receiver)
    if name == "value_counts":
        return value_counts(event, value, selector, receiver)
    if name in _ROWS:
        return _selected(event, name, value, selector, receiver)
    if name in _MOVES:
        return _moved(event, name, value, selector, receiver)
    if name in RUNNING and isinstance(selector, Cells):
        return running(event, name, value, selector, receiver)
    if name in ("where", "mask", "fillna", "combine_first"):
        return chosen(event, name, value, selector, receiver)
    if name in _EACH:
        arguments_of(event)
        return each_of_several(event, name, value, selector, receiver)
    if name in REDUCE or name in ("agg", "aggregate"):
        return reduced(event, name, value, selector, receiver)
    raise Ends(f"{name}: not further")


def _moved(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    table = receiver.value
    if not cell_paths.are_labels_plain(table):
        raise Ends("labels of the program's own classes are not followed")
    arguments = arguments_of(event)
    ids = call_method(cell_paths.ids_of(table), name, arguments)
    cells = as_cells(value, selector)
    result = wrapped(value, selector)
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
    return back(event, receiver, table, value, cells, what, numbers_at(ids, cells))


def _label_moved(event: Event, name: str, value, cells: Cells, receiver: Event, ids) -> Found:
    table = receiver.value
    if value.index.nlevels != table.index.nlevels or not is_table(ids):
        raise Ends(f"{name}: labels are not followed")
    numbers = numpy().asarray(ids.iloc[:, 0] if is_frame(ids) else ids)[list(cells.rows)]
    width = table.shape[1] if is_frame(table) else 1
    found = Found(event, "")
    found.parts.append((receiver, Cells([int(each) // width for each in numbers], cells.column)))
    return found


def _selected(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows an operation that gives some rows of a table in some order."""
    table = receiver.value
    if not isinstance(selector, Cells):
        return None
    need_plain(table)
    arguments = arguments_of(event)
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
    made = call_method(twin_of(table), name, (positional, named))
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
    made = call_method(numbered, name, (positional, {k: v for k, v in named.items() if k != "ignore_index"}))
    if len(made) != len(value):
        raise Ends(f"{name}: what it gave is not what was computed again")
    numbers = [int(made.index[row]) for row in selector.rows]
    if isinstance(selector.column, tuple):
        found = Found(event, "")
        found.parts.append((receiver, Cells(numbers, selector.column)))
        return found
    what = f"{name} took {len(value)} of {len(table)} rows" if len(value) < len(table) else f"{name} moved the row"
    return back(event, receiver, table, value, selector, what, numbers)
