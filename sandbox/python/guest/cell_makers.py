"""Where the cells of new tables came from, and the elements of lists that tables became."""

import ast

import cell_paths
import fact_values
from cell_columns import each, of_rows
from cell_joins import concat, merged
from cell_values import (
    CONTAINERS,
    Cells,
    Ends,
    Event,
    Found,
    close,
    is_array,
    is_dict,
    is_frame,
    is_series,
    is_table,
    same,
)
from cell_views import MAX_CELLS_FOLLOWED, arguments_of, at, label, matched, show


def as_list(event: Event, value, selector, receiver: Event) -> "Found | None":
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
    rows = list(selector.rows) if isinstance(selector, Cells) else list(selector[:1])
    if not rows:
        return None
    found = Found(event, "")
    found.parts.append((receiver, Cells(rows)))
    return found


def to_dict(event: Event, value, selector, receiver: Event) -> "Found | None":
    table = receiver.value
    positional, named = arguments_of(event)
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


def function_of(trace, event: Event, node, name: str, value, selector) -> "Found | None":
    """Follows functions of pandas, and functions of Python that get a table."""
    if name in ("db_frame",):
        found = Found(event, "row of a query")
        if isinstance(selector, Cells):
            show(found, value, selector)
        return found
    first = event.part("argument", "data", "arg")
    if name == "concat" and isinstance(selector, Cells):
        return concat(event, value, selector)
    if name == "merge":
        return merged(event, name, value, selector, None)
    if name in ("DataFrame", "Series") and isinstance(selector, Cells):
        return _constructed(event, name, value, selector, first)
    if name in ("to_datetime", "to_numeric", "to_timedelta") and first is not None and is_series(first.value):
        return each(event, name, value, selector, first)
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
        return of_rows(event, first, first.value, rows, None, name, value, "")
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
                rows = [row for row in matched(value.index, inner.index, cells.rows) if row is not None]
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
