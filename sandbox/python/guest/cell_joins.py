"""Where the cells of a table came from that several tables, or a pivot, made."""

import ast

import cell_paths
import fact_tables
import fact_values
from cell_columns import REDUCE, of_rows
from cell_values import (
    Cells,
    Ends,
    Event,
    Found,
    close,
    is_dict,
    is_frame,
    is_series,
    is_table,
    numpy,
    pandas,
    same,
    short,
    text_of,
)
from cell_views import (
    OTHER,
    ROW,
    arguments_of,
    assigned,
    at,
    back,
    call_method,
    column_name,
    label,
    need_plain,
    numbers_at,
    show,
    twin_of,
)


def merged(event: Event, name: str, value, selector, receiver: "Event | None") -> "Found | None":
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
    need_plain(left)
    need_plain(right)
    right_frame = right.to_frame() if is_series(right) else right
    positional, named = [], {}
    for role, n in parts:
        if role == "receiver" or n == right_at or n == tables[0] and first is None:
            continue
        if role == "argument":
            positional.append(event.operand(n))
        else:
            named[role] = event.operand(n)
    twin, other = twin_of(left), twin_of(right_frame).rename(columns={ROW: OTHER})
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
    for _, _, number, _ in sides:
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


def concat(event: Event, value, cells: Cells) -> Found:
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
    for row, number in zip(cells.rows, numbers_at(made, cells)):
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
        found.parts.append((inner(container, keys[n]), before))
    return found


def inner(container: Event, key) -> "Event | None":
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


def pivoted(event: Event, name: str, value, selector, receiver: Event) -> "Found | None":
    """Follows a cell of a pivot to the rows of the table that it aggregates."""
    if not isinstance(selector, Cells) or len(selector.rows) != 1:
        raise Ends(f"{name}: ask for one cell")
    table = receiver.value
    need_plain(table)
    positional, named = arguments_of(event)
    if positional:
        named = {**dict(zip(("values", "index", "columns", "aggfunc"), positional)), **named}
    values = named.get("values")
    if isinstance(values, list) and len(values) == 1:
        values = values[0]
    if not fact_values.is_scalar(values) or values is None or values not in table.columns or named.get("margins"):
        raise Ends(f"{name}: not further")
    function = named.get("aggfunc", "mean") if name == "pivot_table" else "sum"
    twin = twin_of(table)
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
    if not isinstance(function, str) or function not in REDUCE:
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
    found = of_rows(event, receiver, series, rows, table.columns.get_loc(values), function, result, f" with {where}")
    found.of = len(table)
    return found


def melted(event: Event, value, selector, receiver: Event) -> Found:
    """Follows a cell of a melted table."""
    if not isinstance(selector, Cells) or not isinstance(selector.column, int):
        raise Ends("melt: not further")
    table = receiver.value
    arguments = arguments_of(event)
    ids = cell_paths.ids_of(table)
    made = call_method(ids, "melt", arguments)
    if made.shape != value.shape:
        raise Ends("melt: what it gave is not what was computed again")
    positional, named = arguments
    variable = named.get("var_name", table.columns.name or "variable")
    if value.columns[selector.column] == variable:
        return Found(event, "melt: the name of a column")
    return back(event, receiver, table, value, selector, "melt", numbers_at(made, selector))


def assign(event: Event, value, selector, receiver: Event) -> "Found | None":
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
            found = assigned(event, part, value, selector, f"assign of the column {column}")
            return found
    found = Found(event, "")
    found.parts.append((receiver, Cells(selector.rows, table.columns.get_loc(column))))
    return found


def value_counts(event: Event, value, selector, receiver: Event) -> "Found | None":
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
    positional, named = arguments_of(event)
    if positional or named.get("normalize") or named.get("bins"):
        raise Ends("value_counts: not further")
    if len(rows) != int(value.iat[selector.rows[0]]):
        raise Ends("value_counts: the count is another")
    found = Found(event, f"counted {fact_values.count(len(rows), 'row')} with {short(counted)}")
    show(found, table, Cells(rows))
    found.parts.append((receiver, Cells(rows)))
    return found
